// The last words of a verdict: what a pass says, which layers were in force whatever happened, and the reward.
#pragma once

#include "cuda_agent/verdict.hpp"
#include "judge/judge.hpp"

namespace cuda_agent::judge {

/// Nothing was found wrong: outcome, fault and message of a pass.
void note_pass(Verdict& verdict);

/// The layers that are the judge's own, after those of the sandbox; then the provisional reward, from all that is
/// known.
void close_verdict(Verdict& verdict, const Options& options);

}  // namespace cuda_agent::judge
