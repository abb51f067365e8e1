// What is taken from a candidate's worker before it hears of its candidate, and once that is warm.
#pragma once

#include <optional>
#include <vector>

#include <sys/types.h>

#include "cuda_agent/error.hpp"
#include "cuda_agent/verdict.hpp"
#include "judge/worker.hpp"
#include "util/deadline.hpp"

namespace cuda_agent::judge {

struct CandidateSeal {
  std::vector<Protection> protections;  ///< in force or not, in the worker's words why not
  int threads = 0;                      ///< of the worker when it was sealed
};

/// The worker's number where it has no namespaces of its own: its filter then keeps it from others.
std::optional<pid_t> number_among_others(const Worker& worker);

/// From now on the worker executes no program, makes no process and traces none; with `gpu` it opens no device either.
/// Errors: those of a request to the worker.
Result<CandidateSeal> seal_processes(Worker& candidate, bool gpu, util::Deadline deadline);

/// From now on it starts no thread. `before`: those it had when its processes were sealed, for the report.
Result<Protection> seal_threads(Worker& candidate, int before, util::Deadline deadline);

}  // namespace cuda_agent::judge
