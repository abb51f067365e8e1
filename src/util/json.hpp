// JSON that somebody else wrote, with limits on size and depth.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "cuda_agent/error.hpp"

namespace cuda_agent::util {

struct JsonLimits {
  std::size_t bytes = 4 << 20;
  int depth = 64;  ///< of nested arrays and objects
};

/// Errors: internal_error that says what is wrong and at which byte, or which limit is exceeded. Callers set the
/// outcome and fault, since they know whose text it is. Duplicate keys: the last one counts.
Result<nlohmann::json> parse_json(std::string_view text, const JsonLimits& limits = {});

/// Where a digit or a member of a JSON text can be changed so that it is still read as the same value: a name that an
/// object has twice, or a number with digits that do not count. None when there is nothing of the kind. A signature
/// over the value holds for both, so that only this shows that somebody changed it. `text` is JSON.
std::optional<std::string> find_ambiguity(std::string_view text);

}  // namespace cuda_agent::util
