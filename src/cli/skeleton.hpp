// The kernels' half of a skeleton: one kernel that copies its input, in its CUDA and its C++ form, and its binding.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace cuda_agent::cli {

/// The kernel's name for a task file: its stem as a lower-case identifier, without leading digits; "model_op" when
/// that says nothing.
std::string kernel_name(std::string_view stem);

/// Relative path → content of kernels/<name>.cu, kernels/<name>_cpu.cpp, kernels/<name>_binding.cpp.
std::map<std::string, std::string> kernel_skeleton(const std::string& name);

}  // namespace cuda_agent::cli
