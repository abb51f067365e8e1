#include "selftest/case.hpp"

#include <algorithm>
#include <regex>
#include <set>
#include <system_error>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "selftest/layer.hpp"
#include "util/files.hpp"
#include "util/json.hpp"
#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;

constexpr std::size_t longest_case = std::size_t{64} << 10;

// The last three are for tests/suites.py, which shows the cases to a naive judge too.
const std::set<std::string> case_keys{
    "what",    "row",   "task", "expect",     "honest_twin", "needs", "caught_by",   "also_caught_by", "flags",
    "command", "links", "text", "not_caught", "variant_of",  "naive", "fools_naive", "naive_reason"};
const std::set<std::string> expect_keys{"outcomes", "exit_codes", "message", "rule", "reward", "most_speedup"};

tl::unexpected<Error> bad_case(const fs::path& file, std::string_view why) {
  return fail(
      Outcome::environment_error, fmt::format("{} cannot be used: {}", util::escape_untrusted(file.string()), why),
      {"install cuda-agent again: the cases of the selftest belong to the program and are not meant to be edited"});
}

/// Takes values out of an object of JSON, and keeps the first thing that is not as it should be.
class Reader {
 public:
  Reader(const json& object, std::string name) : m_object(object), m_name(std::move(name)) {}

  void only(const std::set<std::string>& keys) {
    for (auto const& [key, value] : m_object.items()) {
      if (!keys.contains(key)) wrong(fmt::format("unknown key '{}'", util::escape_untrusted(key, 128)));
    }
  }
  bool has(const char* key) const { return m_object.contains(key); }
  /// Nothing where there is no such key.
  const json* find(const char* key, json::value_t type, std::string_view type_name) {
    auto const found = m_object.find(key);
    if (found == m_object.end()) return nullptr;
    if (found->type() == type) return &*found;
    wrong(fmt::format("'{}' is no {}", key, type_name));
    return nullptr;
  }
  std::string text(const char* key, std::string otherwise = {}) {
    auto const* const value = find(key, json::value_t::string, "text");
    return value == nullptr ? std::move(otherwise) : value->get<std::string>();
  }
  std::string needed_text(const char* key) {
    if (!has(key)) wrong(fmt::format("'{}' is missing", key));
    return text(key);
  }
  bool truth(const char* key) {
    auto const* const value = find(key, json::value_t::boolean, "true or false");
    return value != nullptr && value->get<bool>();
  }
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> result;
    auto const* const value = find(key, json::value_t::array, "list of texts");
    if (value == nullptr) return result;
    for (auto const& item : *value) {
      if (!item.is_string()) wrong(fmt::format("'{}' is no list of texts", key));
      if (item.is_string()) result.push_back(item.get<std::string>());
    }
    return result;
  }
  std::optional<double> number(const char* key) {
    if (!has(key)) return std::nullopt;
    auto const& value = m_object.at(key);
    if (!value.is_number()) wrong(fmt::format("'{}' is no number", key));
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  }
  const json& object() const { return m_object; }

  void wrong(const std::string& what) {
    if (m_wrong.empty()) m_wrong = m_name.empty() ? what : fmt::format("{}: {}", m_name, what);
  }
  /// Empty when all is well.
  const std::string& first_wrong() const { return m_wrong; }

 private:
  const json& m_object;
  std::string m_name;
  std::string m_wrong;
};

std::vector<int> exit_codes(Reader& reader) {
  std::vector<int> codes;
  auto const* const value = reader.find("exit_codes", json::value_t::array, "list of whole numbers");
  if (value == nullptr) return codes;
  for (auto const& item : *value) {
    auto const good = item.is_number_unsigned() && item.get<unsigned>() < 256;
    if (!good) reader.wrong("'exit_codes' is no list of whole numbers from 0 to 255");
    if (good) codes.push_back(item.get<int>());
  }
  return codes;
}

Expectation read_expectation(Reader& reader) {
  reader.only(expect_keys);
  Expectation expect;
  expect.outcomes = reader.texts("outcomes");
  expect.exit_codes = exit_codes(reader);
  if (expect.outcomes.empty()) reader.wrong("'outcomes' names none");
  if (expect.exit_codes.empty()) reader.wrong("'exit_codes' names none");
  if (reader.has("rule")) expect.rule = reader.text("rule");
  expect.most_speedup = reader.number("most_speedup");
  if (reader.has("reward")) {
    expect.reward = reader.object().at("reward");
    if (!expect.reward->is_null() && !expect.reward->is_number()) reader.wrong("'reward' is neither null nor a number");
  }
  if (!reader.has("message")) return expect;
  expect.message = reader.text("message");
  try {
    std::regex const pattern(*expect.message);
  } catch (const std::regex_error& error) {
    reader.wrong(fmt::format("'message' is no regular expression: {}", error.what()));
  }
  return expect;
}

/// A name of one part: what is read or made with it stays in its folder.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

void read_links(Reader& reader, Case& result) {
  auto const* const links = reader.find("links", json::value_t::object, "object");
  if (links == nullptr) return;
  for (auto const& [link, target] : links->items()) {
    auto const path = fs::path(link).lexically_normal();
    auto const inside = !link.empty() && path.is_relative() && *path.begin() != "..";
    if (!inside || !target.is_string()) reader.wrong("'links' holds something else than links in the workspace");
    if (inside && target.is_string()) result.links[link] = target.get<std::string>();
  }
}

void read_layers(Reader& reader, Case& result) {
  result.layer = reader.needed_text("caught_by");
  result.also = reader.texts("also_caught_by");
  if (!is_layer(result.layer)) reader.wrong(fmt::format("'caught_by' is none of {}", layer_names()));
  // Else the policy would come first, and what the other layers say would not be seen.
  if (result.layer == "policy" && !result.also.empty()) {
    reader.wrong("'also_caught_by' is for what another layer than the policy catches first");
  }
  std::set<std::string> named{result.layer};
  for (auto const& one : result.also) {
    if (!is_layer(one)) reader.wrong(fmt::format("'also_caught_by' holds something else than {}", layer_names()));
    if (!named.insert(one).second) reader.wrong(fmt::format("'also_caught_by' names '{}' again", one));
  }
}

/// What only the policy catches must be refused by it; the rest of what is expected is for the day it is caught twice.
void expect_the_policy(Case& result) {
  result.layer = "policy";
  result.also.clear();
  result.expect = {};
  result.expect.outcomes = {std::string(to_string(Outcome::policy_violation))};
  result.expect.exit_codes = {exit_code(Outcome::policy_violation)};
}

/// What an exploit says beyond what all cases say.
void read_exploit(Reader& reader, Case& result) {
  read_layers(reader, result);
  result.honest_twin = reader.needed_text("honest_twin");
  if (!reader.has("expect")) reader.wrong("'expect' is missing");
  if (result.layer == "policy" && !result.expect.rule) reader.wrong("'expect' names no rule of the policy");
}

}  // namespace

std::vector<std::string> Case::layers() const {
  std::vector<std::string> all;
  if (!layer.empty()) all.push_back(layer);
  all.insert(all.end(), also.begin(), also.end());
  return all;
}

bool Case::policy_refuses() const {
  auto const all = layers();
  return std::find(all.begin(), all.end(), "policy") != all.end();
}

Result<Case> read_case(const fs::path& folder, Kind kind) {
  auto const file = folder / "case.json";
  auto const text = util::read_file(file, longest_case);
  if (!text) return bad_case(file, text.error().message);
  auto const facts = util::parse_json(*text, {.bytes = longest_case, .depth = 8});
  if (!facts) return bad_case(file, facts.error().message);
  if (!facts->is_object()) return bad_case(file, "it is no object of JSON");

  Reader reader(*facts, {});
  reader.only(case_keys);
  Case result;
  result.folder = folder;
  result.kind = kind;
  result.name = (folder.parent_path().filename() / folder.filename()).string();
  result.what = reader.needed_text("what");
  result.row = reader.needed_text("row");
  result.task = reader.text("task");
  result.command = reader.text("command", "verify");
  result.flags = reader.texts("flags");
  result.variant_of = reader.text("variant_of");
  result.gap = reader.text("not_caught");
  result.text = reader.truth("text");
  auto const needs = reader.texts("needs");
  result.needs_cuda = std::find(needs.begin(), needs.end(), "cuda") != needs.end();
  read_links(reader, result);
  if (!result.task.empty() && !is_plain_name(result.task)) reader.wrong("'task' is no name of a folder");

  result.expect.outcomes = {"pass"};
  result.expect.exit_codes = {0};
  if (auto const* const expect = reader.find("expect", json::value_t::object, "object")) {
    Reader inner(*expect, "expect");
    result.expect = read_expectation(inner);
    if (!inner.first_wrong().empty()) reader.wrong(inner.first_wrong());
  }
  if (kind == Kind::exploit) read_exploit(reader, result);
  if (!reader.first_wrong().empty()) return bad_case(file, reader.first_wrong());
  if (!result.gap.empty() && result.policy_refuses()) expect_the_policy(result);
  return result;
}

namespace {

/// What a case says of other cases must be there.
Result<void> check_names(const std::vector<Case>& cases) {
  std::set<std::string> names;
  for (auto const& one : cases) names.insert(one.name);
  for (auto const& one : cases) {
    if (!one.honest_twin.empty() && !names.contains("honest/" + one.honest_twin)) {
      return bad_case(one.folder / "case.json",
                      fmt::format("'honest_twin' names no case: {}", util::escape_untrusted(one.honest_twin, 128)));
    }
    if (!one.variant_of.empty() && !names.contains("exploits/" + one.variant_of)) {
      return bad_case(one.folder / "case.json",
                      fmt::format("'variant_of' names no case: {}", util::escape_untrusted(one.variant_of, 128)));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Case>> read_cases(const fs::path& root) {
  std::vector<Case> cases;
  for (auto const& [name, kind] : {std::pair("exploits", Kind::exploit), std::pair("honest", Kind::honest)}) {
    std::vector<fs::path> folders;
    std::error_code error;
    for (fs::directory_iterator entry(root / name, error), end; !error && entry != end; entry.increment(error)) {
      if (fs::exists(entry->path() / "case.json")) folders.push_back(entry->path());
    }
    if (error || folders.empty()) {
      return fail(Outcome::environment_error,
                  fmt::format("the cases of the selftest are missing: {}{}",
                              util::escape_untrusted((root / name).string()), error ? ": " + error.message() : ""),
                  {"install cuda-agent again: cmake --install BUILD_FOLDER --prefix FOLDER"});
    }
    std::sort(folders.begin(), folders.end());
    for (auto const& folder : folders) {
      auto read = read_case(folder, kind);
      if (!read) return fail(read.error());
      cases.push_back(std::move(*read));
    }
  }
  if (auto checked = check_names(cases); !checked) return fail(checked.error());
  return cases;
}

}  // namespace cuda_agent::selftest
