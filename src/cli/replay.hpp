// Runs the checks of a verdict again: same task, same candidate, same seeds.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cuda_agent/error.hpp"

namespace cuda_agent::cli {

struct Replay {
  std::vector<std::string> done;      ///< one sentence an ask
  std::vector<std::string> problems;  ///< what came out otherwise
};

/// Judges the workspace of `options` with each seed of the verdict. Another candidate or task than the verdict's is a
/// problem, and so is another outcome. Errors: the verdict has no seed, or an ask could not be made.
Result<Replay> replay(const nlohmann::json& verdict, const CheckVerdictOptions& options, Console& console);

}  // namespace cuda_agent::cli
