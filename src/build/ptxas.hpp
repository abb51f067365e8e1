// What `-Xptxas -v` says about each kernel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cuda_agent/verdict.hpp"

namespace cuda_agent::build {

/// One entry a kernel (entry function), in order of appearance.
std::vector<KernelResources> parse_ptxas(std::string_view output);

/// As c++filt prints it; the name itself when it is not a mangled one.
std::string demangle(const std::string& name);

}  // namespace cuda_agent::build
