// Extensions built from a few lines of C++ with the project's own build functions, real compilers and real torch, and
// what the policy finds in them.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "build/extension.hpp"
#include "build/toolchain.hpp"
#include "policy/objects.hpp"

namespace cuda_agent::policy::test {

/// Path relative to the workspace ("kernels/a_binding.cpp") and text.
using Files = std::map<std::string, std::string>;

/// The files below `folder`/kernels.
Files kernels_of(const std::filesystem::path& folder);

/// A text constant NAME = """...""" of tests/e2e/harness.py.
std::string harness_text(const std::string& name);

/// Registers nothing but a name: what a workspace without another binding needs.
extern const char* const nothing_binding;

/// Empty, or why nothing can be built for this target here (no nvcc, a torch without CUDA).
std::string reason_not_to_build(build::Target target);

/// The files, compiled and linked for `target` (CUDA: sm_90a). `compiler`: "g++" or "clang++". Throws what a
/// compiler said when they do not build.
std::vector<ObjectFinding> findings_in(const Files& files, build::Target target, const std::string& compiler = "g++");

/// One file, linked by g++ alone: for what the project's own flags never produce.
std::vector<ObjectFinding> findings_in_library(const std::string& text, const std::vector<std::string>& flags);

/// For messages: one finding a line.
std::string listed(const std::vector<ObjectFinding>& findings);

}  // namespace cuda_agent::policy::test
