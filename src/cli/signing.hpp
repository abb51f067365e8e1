// Who signs grades on this machine, and how.
#pragma once

#include <filesystem>
#include <string>

#include "cuda_agent/verdict.hpp"
#include "util/ed25519.hpp"

namespace cuda_agent::cli {

/// $CUDA_AGENT_KEY, else cuda-agent/grade-key.pem below $XDG_STATE_HOME or ~/.local/state.
std::filesystem::path signing_key_file();

/// The verdict as JSON on one line, with `signature` (docs/verdict.md).
std::string signed_json(const Verdict& verdict, const util::SigningKey& key);

}  // namespace cuda_agent::cli
