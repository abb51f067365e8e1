// What is wrong with a task: a model whose results a cheat could guess, or that does not repeat itself.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda_agent/error.hpp"
#include "cuda_agent/verdict.hpp"
#include "judge/exchange.hpp"

namespace cuda_agent::judge {

struct TaskFacts {
  std::vector<TaskFinding> findings;  ///< kinds "degenerate" and "nondeterministic"
  OutputNode output;                  ///< what eager returned, as an example
  double eager_microseconds = 0;      ///< of the last call, overhead included
};

/// Runs the eager arm: twice on the same inputs and once on others. These calls warm it up as well.
Result<TaskFacts> lint_task(Exchange& exchange, std::uint64_t seed, util::Deadline deadline);

}  // namespace cuda_agent::judge
