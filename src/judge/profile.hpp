// Speed: all arms on the same fresh inputs in random order, round after round, every result compared.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cuda_agent/error.hpp"
#include "cuda_agent/verdict.hpp"
#include "judge/exchange.hpp"
#include "judge/judge.hpp"
#include "judge/statistics.hpp"
#include "judge/verify.hpp"
#include "util/progress.hpp"

namespace cuda_agent::judge {

/// What is measured before the candidate worker hears of its candidate.
struct Overheads {
  OutputNode like;                  ///< what an empty call stores
  int calls = 1;                    ///< K
  double reference_null = 0;        ///< microseconds of K empty calls
  std::vector<double> eager_alone;  ///< microseconds a call, null subtracted, before the candidate was loaded
};

/// K so that a timed span is at least 200 µs, bounded by memory.
int calls_for(double eager_microseconds, double null_microseconds, std::uint64_t bytes_a_call);

/// Draws inputs for K slots, warms the eager arm on them, and measures an empty call and eager alone.
Result<Overheads> measure_overheads(Exchange& exchange, const OutputNode& like, double eager_microseconds,
                                    std::uint64_t seed, util::Deadline deadline);

struct ProfileOptions {
  std::vector<Arm> baselines;
  StoppingRule rule;
  double budget_seconds = 1.0;  ///< after this, the next look is the last
  ToleranceOverride tolerance;
  CallLimits limits;
};

struct ProfileResult {
  Speed speed;
  std::vector<TaskFinding> findings;
  std::map<std::string, std::string> not_measured;
};

/// Errors: the candidate's (wrong, crash, timeout) or ours. A compiled baseline that fails or re-compiles is left out
/// and named in `not_measured`. The candidate's processes may have been ended.
Result<ProfileResult> profile(Exchange& exchange, Worker& reference, Worker& candidate, const Overheads& overheads,
                              const ProfileOptions& options, std::uint64_t seed, Correctness& correctness,
                              util::Progress& progress);

}  // namespace cuda_agent::judge
