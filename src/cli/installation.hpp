// Where the files that belong to the program lie: beside an installed binary, or in the build tree.
#pragma once

#include <filesystem>

#include "cuda_agent/error.hpp"
#include "judge/judge.hpp"

namespace cuda_agent::cli {

struct Installation {
  judge::Installation judge;
  std::filesystem::path example;   ///< the workspace that `init` copies
  std::filesystem::path selftest;  ///< its cases; nothing else needs them, so they may be absent
};

/// A file `cuda-agent.layout.json` next to `executable` (written by the build) names the places; without it they are
/// found relative to the executable's prefix, so that an installed tree can be moved.
/// Errors: environment_error that names what is missing.
Result<Installation> find_installation(const std::filesystem::path& executable);

/// That of the running program.
Result<Installation> find_installation();

}  // namespace cuda_agent::cli
