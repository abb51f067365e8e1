// Whether a verdict's figures follow from its samples, and whether its signature holds. Needs no GPU and no torch: what
// it looks at is in the file.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cuda_agent/error.hpp"

namespace cuda_agent::judge {

struct VerdictCheck {
  bool is_signed = false;
  std::string public_key;             ///< of who signed it; 64 hexadecimal digits
  int recomputed = 0;                 ///< figures that were computed again
  std::vector<std::string> problems;  ///< one sentence each: path, what it says, what it should be
};

/// The bytes that a signature is over: the object without `signature`, keys sorted, no white space.
std::string signed_bytes(nlohmann::json verdict);

/// Recomputes the arms' times, the ratios and their intervals, and for a grade the combined ratios and the reward from
/// the samples, and verifies the signature where there is one. Errors (usage_error): not a verdict of this schema.
Result<VerdictCheck> check_verdict(const nlohmann::json& verdict);

}  // namespace cuda_agent::judge
