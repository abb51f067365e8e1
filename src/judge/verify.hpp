// Correctness: the candidate's results on fresh random inputs against the reference's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cuda_agent/error.hpp"
#include "cuda_agent/verdict.hpp"
#include "judge/exchange.hpp"
#include "judge/outputs.hpp"
#include "util/progress.hpp"

namespace cuda_agent::judge {

/// Time limits of the forward calls.
struct CallLimits {
  util::Deadline ask;             ///< the whole ask
  double candidate_seconds = 60;  ///< one forward of the candidate
};

struct VerifyOptions {
  int trials = 5;
  bool keep_going = false;
  ToleranceOverride tolerance;
  CallLimits limits;
};

/// Adds what one comparison saw to the verdict's part. `trial` is 1-based.
void note_check(Correctness& correctness, const OutputCheck& check, int trial);

/// Compares the candidate's kept results of the last timed calls with eager's, and its inputs with those drawn.
/// `inputs_may_change`: the task's own model changes them. Gives a wrong-result error, or an error of ours.
Result<void> check_candidate(Exchange& exchange, const ArmCall& eager, const ArmCall& candidate, bool inputs_may_change,
                             const ToleranceOverride& tolerance, int trial, Correctness& correctness);

/// Runs the trials. Seeds are drawn from `seeds`, a generator's state that is advanced. The error is the first failure;
/// with keep_going the others are tried all the same.
Result<void> verify(Exchange& exchange, const VerifyOptions& options, std::uint64_t seed, Correctness& correctness,
                    util::Progress& progress);

}  // namespace cuda_agent::judge
