// What the two workers of an ask are started with.
#pragma once

#include <filesystem>

#include "build/extension.hpp"
#include "cuda_agent/error.hpp"
#include "judge/judge.hpp"
#include "judge/machine.hpp"
#include "judge/worker.hpp"

namespace cuda_agent::judge {

struct WorkerSetups {
  WorkerSetup reference;
  WorkerSetup candidate;
};

/// `module`: the folder of _cuda_agent; `torch_cache`: what make_torch_cache gave. They refer to the machine's
/// interpreter.
WorkerSetups worker_setups(const Machine& machine, const Options& options, const std::filesystem::path& module,
                           const std::filesystem::path& torch_cache);

/// The folder for what torch.compile makes. Errors: environment_error.
Result<std::filesystem::path> make_torch_cache(const build::Cache& cache);

}  // namespace cuda_agent::judge
