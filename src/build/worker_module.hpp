// The `_cuda_agent` extension module, built for one Python × torch × ABI and kept.
#pragma once

#include <filesystem>

#include "build/extension.hpp"
#include "build/toolchain.hpp"

namespace cuda_agent::build {

/// All *.cpp of the folder are compiled as one translation unit, so names local to a file must differ between files;
/// *.py are copied beside the module.
///
/// The folder that holds `_cuda_agent<suffix>` for this interpreter: found in `installed` (the installation's
/// lib/cuda-agent/worker), else in the cache, else built into the cache (about twenty seconds, with a note that says
/// so). `sources` is the installation's share/cuda-agent/worker. Key: source hashes, interpreter, torch, ABI, host
/// compiler.
Result<std::filesystem::path> worker_module(const std::filesystem::path& sources,
                                            const std::filesystem::path& installed, const Toolchain& toolchain,
                                            const Interpreter& interpreter, const Cache& cache,
                                            util::Progress& progress, util::Deadline deadline);

/// Builds into `destination`/<key>/ (used by the install step: `cuda-agent worker-module DIR`).
Result<std::filesystem::path> build_worker_module(const std::filesystem::path& sources,
                                                  const std::filesystem::path& destination, const Toolchain& toolchain,
                                                  const Interpreter& interpreter, util::Progress& progress,
                                                  util::Deadline deadline);

}  // namespace cuda_agent::build
