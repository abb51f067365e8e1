// What the judge answered about a case.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cuda_agent/error.hpp"
#include "selftest/case.hpp"

namespace cuda_agent::selftest {

/// How many times as fast as eager, with the low end of its interval.
struct Speedup {
  double low = 0;
  double estimate = 0;
};

struct Answer {
  std::string outcome;
  int exit_code = -1;
  std::string message;
  std::vector<std::string> hints;
  std::vector<std::string> rules;  ///< of the policy, that were broken
  std::optional<double> reward;    ///< none: null
  std::string reward_reason;
  std::optional<Speedup> speedup;  ///< none where it was not timed
};

/// From what it printed on standard output and standard error together. Errors (internal_error): a terminal's escape
/// code in it, or something else than one verdict.
Result<Answer> read_answer(const Case& one, int exit_code, const std::string& output);

}  // namespace cuda_agent::selftest
