// Three asks about one candidate, each with fresh workers and fresh seeds, made into one answer: the only source of a
// final reward.
#pragma once

#include <vector>

#include "cuda_agent/verdict.hpp"

namespace cuda_agent::judge {

inline constexpr int grade_runs = 3;
/// A baseline whose ratio differs by more than this between the asks makes the grade `unstable`.
inline constexpr double steady = 0.02;

/// Whether an ask with this outcome found the candidate correct: --require-speedup asks for more than that.
bool is_right(Outcome outcome);

/// Combines the verdicts of `run`, in order; at least one. The outcome is that of the first ask that was not right,
/// which ends a grade; else pass, or slow when one was. The final reward rests on the lowest low end of each baseline
/// over all asks, so that a lucky ask gains nothing. Build, task, environment and protections are the first ask's; a
/// protection is in force when it was in every ask.
Verdict combine_grade(const std::vector<Verdict>& asks);

}  // namespace cuda_agent::judge
