#include "util/json.hpp"

#include <optional>

#include <spdlog/fmt/fmt.h>

namespace cuda_agent::util {

namespace {

// Where the text nests deeper than `depth`. Looked for before parsing, so that a hostile text builds no deep tree.
std::optional<std::size_t> too_deep_at(std::string_view text, int depth) {
  int open = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    char const c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++open > depth) return at;
    } else if (c == ']' || c == '}') {
      --open;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return fail(Outcome::internal_error,
                fmt::format("JSON of {} bytes is longer than the limit of {}", text.size(), limits.bytes));
  }
  if (auto const at = too_deep_at(text, limits.depth)) {
    return fail(Outcome::internal_error,
                fmt::format("JSON nests deeper than {} levels at byte {}", limits.depth, *at + 1));
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    return fail(Outcome::internal_error, fmt::format("not JSON at byte {}: {}", error.byte, error.what()));
  } catch (const nlohmann::json::exception& error) {
    return fail(Outcome::internal_error, fmt::format("JSON that cannot be read: {}", error.what()));
  }
}

}  // namespace cuda_agent::util
