// What must be true before nvcc is asked to compile, and what it can compile for.
#pragma once

#include <optional>
#include <vector>

#include "build/extension.hpp"
#include "build/toolchain.hpp"

namespace cuda_agent::build {

/// environment_error when there is no nvcc, when torch was built without CUDA, or when their CUDA versions do not fit.
std::optional<Error> check_cuda(const Toolchain& toolchain, const Interpreter& interpreter);

/// `nvcc --list-gpu-code`, e.g. {75, 80, 86, 90}; kept in the cache. Errors: environment_error.
Result<std::vector<int>> supported_architectures(const Compiler& nvcc, const Cache& cache, util::Deadline deadline);

}  // namespace cuda_agent::build
