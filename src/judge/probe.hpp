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
  bool float64 = true;       ///< false: it does not fit into the device's memory
  PrecisionRule rule = PrecisionRule::same;
  ToleranceOverride tolerance;
  CallLimits limits;
};

struct Probe {
  std::string other_inputs;                  ///< why the candidate was not tried on such; empty: it was
  std::optional<PrecisionReport> precision;  ///< none: not_precise says why
  std::string not_precise;
};

/// Other inputs: the signs of all floating-point values are drawn anew, and one value of each tensor becomes 2¹⁸ times
/// the RMS, or 2⁷ times where the task's model then gives no finite result. They count where the results are of single
/// precision and eager's finite; a candidate that fails on them is wrong. The precision is measured with other signs
/// and no such value, where that counts; a candidate of 7 bits or fewer where eager has 24 is wrong too. Where the
/// task's own model cannot take such inputs, or the precision cannot be measured, the reason is returned. Errors: the
/// candidate's failures, interrupted, and the ask's own time limit.
Result<Probe> probe(Exchange& exchange, Worker& reference, const ProbeOptions& options, std::uint64_t seed,
                    Correctness& correctness);

}  // namespace cuda_agent::judge
