// The reward of a verdict: the milestones of the CUDA Agent paper (arXiv 2602.24286, eq. 1; docs/verdict.md).
#pragma once

#include <optional>
#include <vector>

#include "cuda_agent/verdict.hpp"

namespace cuda_agent::judge {

/// A candidate is faster when (t₀ − t) / t₀ > 0.05, that is when baseline time / candidate time > 1 / 0.95.
inline constexpr double faster_than = 1.0 / 0.95;

/// Which number of an interval has to clear the bar.
enum class RewardOn { interval /* its low end */, median /* its estimate: the paper's reading */ };

struct RewardFacts {
  Outcome outcome = Outcome::pass;
  Fault fault = Fault::none;
  std::optional<Interval> versus_eager;     ///< eager time / candidate time, where timed
  std::optional<Interval> versus_compiled;  ///< compiled time / candidate time, where timed
  bool seeds_replayed = false;              ///< --seed: the candidate may have seen the inputs
  bool policy_off = false;                  ///< --policy none: torch may have done the work
  bool layer_off = false;                   ///< --without: a layer of protection was left out
  /// The candidate is of a lower precision than --precision asks for: 1 at the most.
  std::optional<PrecisionReport> precision = std::nullopt;
  std::vector<TaskFinding> task_findings;  ///< "degenerate" and "nondeterministic" take the reward away
  RewardOn on = RewardOn::interval;
};

/// −1: failed by the candidate's fault. 1: correct. 2: also faster than eager. 3: faster than both baselines. The
/// highest milestone that was shown is given; none when nothing was timed, the seeds were replayed, the task is unfit
/// or the fault is not the candidate's. The reason says which. `slow` (--require-speedup not reached) is a correct
/// result.
Reward provisional_reward(const RewardFacts& facts);

}  // namespace cuda_agent::judge
