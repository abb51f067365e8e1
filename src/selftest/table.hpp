// What all cases came to, for people.
#pragma once

#include <string>
#include <vector>

#include "selftest/run.hpp"

namespace cuda_agent::selftest {

/// Case, what it does, layer, expected, got, with its layers off (where proofs were tried), seconds; below it what is
/// wrong, and the counts. `verbose` adds messages and what was left out.
std::string as_table(const std::vector<CaseResult>& results, bool verbose);

}  // namespace cuda_agent::selftest
