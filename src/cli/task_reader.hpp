// Reads a KernelBench-style task file and writes the Python half of a skeleton for it.
#pragma once

#include <filesystem>
#include <string>

#include "cuda_agent/error.hpp"
#include "util/deadline.hpp"

namespace cuda_agent::cli {

/// The content of model_new.py for the task in `task`: Model's constructor under the name ModelNew, with what it needs
/// of the file, and a forward that says where to begin, naming the kernel `kernel`. The task is parsed, never run, by
/// `python` (any Python 3.9 or newer; torch is not needed).
/// Errors: task_error (no Model, get_inputs or get_init_inputs; no Python), environment_error, timeout, interrupted.
Result<std::string> model_new_for(const std::filesystem::path& task, const std::string& kernel,
                                  const std::filesystem::path& python, util::Deadline deadline);

/// `requested`, else $CUDA_AGENT_PYTHON, $VIRTUAL_ENV's, python3. Errors: environment_error.
Result<std::filesystem::path> any_python(const std::string& requested);

}  // namespace cuda_agent::cli
