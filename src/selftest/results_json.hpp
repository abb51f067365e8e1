// What all cases came to, for programs.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "selftest/run.hpp"

namespace cuda_agent::selftest {

/// The keys "cases", "counts", "proofs" (null where none was tried) and "message".
nlohmann::json as_json(const std::vector<CaseResult>& results);

}  // namespace cuda_agent::selftest
