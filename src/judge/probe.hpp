// What is asked once a candidate has passed its trials and was timed: whether it is right for inputs of other signs and
// sizes than get_inputs draws, and how precise it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cuda_agent/error.hpp"
#include "cuda_agent/verdict.hpp"
#include "judge/exchange.hpp"
#include "judge/outputs.hpp"
#include "judge/precision.hpp"
#include "judge/verify.hpp"

namespace cuda_agent::judge {

struct ProbeOptions {
  bool other_inputs = true;  ///< false: only inputs as get_inputs draws them
  PrecisionRule rule = PrecisionRule::same;
  ToleranceOverride tolerance;
  CallLimits limits;
};

struct Probe {
  std::string other_inputs;                  ///< why the candidate was not tried on such; empty: it was
  std::optional<PrecisionReport> precision;  ///< none: not_precise says why
  std::string not_precise;
};

/// Other inputs: the signs of all floating-point values are drawn anew, and one value of each tensor becomes 128 times
/// the RMS. They count where both results are of single precision and eager's is finite; a candidate that fails on them
/// is wrong. Where the task's own model cannot take them, or the precision cannot be measured, the reason is returned.
/// Errors: the candidate's failures, interrupted, and the ask's own time limit.
Result<Probe> probe(Exchange& exchange, Worker& reference, const ProbeOptions& options, std::uint64_t seed,
                    Correctness& correctness);

}  // namespace cuda_agent::judge
