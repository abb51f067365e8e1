// What all cases came to: counts, and these in words.
#pragma once

#include <map>
#include <string>
#include <vector>

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
  int proven = 0;      ///< exploits whose layers are what catches them
  int not_proven = 0;
  std::map<std::string, int> not_switchable;  ///< exploits by the layer that cannot be switched off
};

Counts count(const std::vector<CaseResult>& results);

/// pass; internal_error when a case is not as expected or not proven; environment_error when one could not be judged.
Outcome outcome_of(const Counts& counts);

/// "86 of 86 exploits caught, 30 of 30 honest candidates passed, 12 left out: they need a GPU", and so on.
std::string in_words(const Counts& counts);

/// "59 of 60 exploits get through once the layers that catch them are switched off; of 24 the layer cannot be switched
/// off: clock 3, sandbox 21". Empty where no proof was tried.
std::string proofs_in_words(const Counts& counts);

}  // namespace cuda_agent::selftest
