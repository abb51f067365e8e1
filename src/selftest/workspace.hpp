// The workspace in which a case is judged.
#pragma once

#include <filesystem>

#include "cuda_agent/error.hpp"
#include "selftest/case.hpp"

namespace cuda_agent::selftest {

/// Makes the folder `into`: the files of the case's task in `tasks`, over them its own. A case that brings bindings of
/// its own gets none of the task's kernels; any other one gets the binding that is common to all.
/// Errors: environment_error.
Result<void> make_workspace(const Case& one, const std::filesystem::path& tasks, const std::filesystem::path& into);

}  // namespace cuda_agent::selftest
