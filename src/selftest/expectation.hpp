// Whether an answer is the one that a case asks for.
#pragma once

#include <string>
#include <vector>

#include "selftest/answer.hpp"
#include "selftest/case.hpp"

namespace cuda_agent::selftest {

/// What is not as it should be, in sentences; empty when all is. What it gains is another question (gain.hpp).
std::vector<std::string> unexpected(const Case& one, const Answer& answer);

/// "wrong or crash (exit code 6)"
std::string in_words(const Expectation& expect);

}  // namespace cuda_agent::selftest
