#include "util/json.hpp"

#include <array>
#include <charconv>
#include <set>
#include <vector>

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

/// The digits that count: "-0.0120e3" has "12".
std::string digits_of(std::string_view number) {
  std::string digits;
  for (char const c : number.substr(0, number.find_first_of("eE"))) {
    if (c >= '0' && c <= '9' && !(digits.empty() && c == '0')) digits += c;
  }
  while (!digits.empty() && digits.back() == '0') digits.pop_back();
  return digits;
}

/// Whether it is the shortest text that is read as this value: by the library that writes verdicts, or by to_chars,
/// which is shorter once in a thousand and what other programs agree on.
bool is_shortest(double value, const std::string& text) {
  std::array<char, 64> shortest{};
  auto const end = std::to_chars(shortest.begin(), shortest.end(), value);
  auto const digits = digits_of(text);
  return digits == digits_of({shortest.data(), end.ptr}) || digits == digits_of(nlohmann::json(value).dump());
}

class AmbiguityFinder : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::optional<std::string> found;

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t value, const string_t& text) override {
    if (is_shortest(value, text)) return true;
    return stop(fmt::format("the number {} has digits that do not count", text));
  }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*elements*/) override {
    m_names.emplace_back();
    return true;
  }
  bool key(string_t& name) override {
    if (m_names.back().insert(name).second) return true;
    return stop(fmt::format("the name \"{}\" is there twice", name));
  }
  bool end_object() override {
    m_names.pop_back();
    return true;
  }
  bool start_array(std::size_t /*elements*/) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return false;
  }

 private:
  bool stop(std::string what) {
    found = std::move(what);
    return false;
  }

  std::vector<std::set<std::string>> m_names;  ///< of the objects that are open
};

}  // namespace

std::optional<std::string> find_ambiguity(std::string_view text) {
  AmbiguityFinder finder;
  nlohmann::json::sax_parse(text, &finder);
  return finder.found;
}

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
