// Speed: all arms on the same fresh inputs in random order, round after round, every result compared.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cuda_agent/error.hpp"
#include "cuda_agent/verdict.hpp"
#include "judge/exchange.hpp"
#include "judge/judge.hpp"
#include "judge/overheads.hpp"
#include "judge/statistics.hpp"
#include "judge/verify.hpp"
#include "util/progress.hpp"

namespace cuda_agent::judge {

struct ProfileOptions {
  std::vector<Arm> baselines;
  StoppingRule rule;
  ToleranceOverride tolerance;
  CallLimits limits;
  /// Called once the compiled arm is there and before the others run: until then another process may use the device.
  std::function<Result<void>()> when_compiled = [] { return Result<void>(); };
  /// Called once every arm has run and before anything is timed.
  std::function<Result<void>()> when_warm = [] { return Result<void>(); };
  /// Called once everything is timed, while the candidate is still there: eager may be timed once more without it.
  std::function<Result<void>()> when_timed = [] { return Result<void>(); };
};

struct ProfileResult {
  Speed speed;
  std::vector<TaskFinding> findings;
  std::map<std::string, std::string> not_measured;
  Timeline timeline;  ///< of the parts
};

/// Errors: the candidate's (wrong, crash, timeout) or ours. A compiled baseline that fails or re-compiles is left out
/// and named in `not_measured`. The candidate's processes may have been ended.
Result<ProfileResult> profile(Exchange& exchange, Worker& reference, Worker& candidate, const Overheads& overheads,
                              const ProfileOptions& options, std::uint64_t seed, Correctness& correctness,
                              util::Progress& progress);

}  // namespace cuda_agent::judge
