// What all cases came to: counts, a table, JSON.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cuda_agent/error.hpp"
#include "selftest/run.hpp"

namespace cuda_agent::selftest {

struct Counts {
  int exploits = 0;  ///< that were judged
  int caught = 0;
  int honest = 0;  ///< that were judged
  int passed = 0;
  int not_judged = 0;
  int need_gpu = 0;    ///< left out
  int known_gaps = 0;  ///< left out
};

Counts count(const std::vector<CaseResult>& results);

/// pass; internal_error when a case is not as expected; environment_error when one could not be judged.
Outcome outcome_of(const Counts& counts);

/// "86 of 86 exploits caught, 30 of 30 honest candidates passed, 12 left out: they need a GPU", and so on.
std::string in_words(const Counts& counts);

/// Case, what it does, layer, expected, got, seconds; below it what is wrong, and the counts. `verbose` adds messages
/// and what was left out.
std::string as_table(const std::vector<CaseResult>& results, bool verbose);

/// The keys "cases", "counts" and "message".
nlohmann::json as_json(const std::vector<CaseResult>& results);

}  // namespace cuda_agent::selftest
