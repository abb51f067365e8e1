// The command line, environment and sandbox of a worker process.
#pragma once

#include <filesystem>

#include "exec/child.hpp"
#include "judge/worker.hpp"

namespace cuda_agent::judge {

/// Number that the channel has in the worker.
inline constexpr int worker_channel_fd = 3;

/// Folder in the reference worker's cache for the headers that Inductor precompiles. It has to exist.
inline constexpr const char* inductor_headers = "inductor-headers";

struct WorkerCommand {
  exec::Command command;
  std::filesystem::path folder_inside;
};

/// Without bubblewrap the process runs directly: the verdict's protections say so.
WorkerCommand worker_command(const WorkerSetup& setup, const exec::SandboxSupport& support);

}  // namespace cuda_agent::judge
