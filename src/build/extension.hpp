// Snapshot → extension: compiles the candidate's kernels/ with the judge's own binding.cpp into `cuda_extension`.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "build/toolchain.hpp"
#include "cuda_agent/error.hpp"
#include "cuda_agent/verdict.hpp"
#include "util/deadline.hpp"
#include "util/progress.hpp"

namespace cuda_agent::build {

/// Where compiled objects, the precompiled header and worker modules are kept. Content-addressed: entries are named by
/// the hash of everything that went in, written whole or not at all, and safe to share between processes.
struct Cache {
  std::filesystem::path root;
};

/// $CUDA_AGENT_CACHE, else $XDG_CACHE_HOME/cuda-agent, else ~/.cache/cuda-agent; `fallback` when none is writable.
Result<Cache> open_cache(const std::filesystem::path& fallback);

enum class Target { cpu, cuda };

struct ExtensionRequest {
  std::filesystem::path snapshot;  ///< read-only folder with kernels/ in it
  std::filesystem::path support;   ///< installation folder with binding.cpp and binding_registry.h
  std::filesystem::path output;    ///< folder for cuda_extension.so (always a path of its own)
  Target target = Target::cpu;
  std::string architecture;      ///< from --arch ("90a", "sm_90a", "9.0a"); empty = TORCH_CUDA_ARCH_LIST or the GPU's
  std::string gpu_architecture;  ///< "9.0" of the GPU that will run it; empty = none here
  int jobs = 0;                  ///< 0 = one per core
  double object_timeout = 120;   ///< seconds one compiler may take
};

struct ExtensionResult {
  BuildReport report;
  std::filesystem::path extension;  ///< empty when error is set
  std::optional<Error> error;       ///< compile_error, timeout, environment_error, interrupted
  /// What it was linked from: source, relative to the workspace, and object file in the cache.
  std::vector<std::pair<std::string, std::filesystem::path>> objects = {};
  std::vector<std::filesystem::path> library_folders = {};  ///< where its libraries lie, before the system's own
};

/// cpu: kernels/*.cpp with -DCUDA_AGENT_CPU=1; cuda: kernels/*.cu and kernels/*.cpp except *_cpu.cpp, with
/// -DCUDA_AGENT_CUDA=1. Subfolders of kernels/ are searched too.
ExtensionResult build_extension(const ExtensionRequest& request, const Toolchain& toolchain,
                                const Interpreter& interpreter, const Cache& cache, util::Progress& progress,
                                util::Deadline deadline);

}  // namespace cuda_agent::build
