#include "policy/objects_rules.hpp"

#include <algorithm>
#include <set>

#include <fnmatch.h>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "policy/objects_json.hpp"
#include "util/json.hpp"

namespace cuda_agent::policy {

namespace {

using nlohmann::json;

// Thrown here and caught in parse_object_rules: an error in the middle of a tree needs no result at every step.
struct Wrong {
  std::string what;
};

const json& member(const json& object, const char* key, const std::string& where) {
  if (!object.is_object() || !object.contains(key)) throw Wrong{fmt::format("{} has no key \"{}\"", where, key)};
  return object.at(key);
}

void only(const json& object, const std::set<std::string>& known, const std::string& where) {
  if (!object.is_object()) throw Wrong{fmt::format("{} is not an object", where)};
  for (auto const& [key, value] : object.items()) {
    if (known.count(key) == 0) throw Wrong{fmt::format("{} has an unknown key \"{}\"", where, key)};
  }
}

std::string text(const json& object, const char* key, const std::string& where) {
  auto const& value = member(object, key, where);
  if (!value.is_string() || value.get<std::string>().empty()) {
    throw Wrong{fmt::format("\"{}\" of {} is not a text", key, where)};
  }
  return value.get<std::string>();
}

Patterns patterns(const json& object, const char* key, const std::string& where) {
  Patterns found;
  auto const& list = member(object, key, where);
  if (!list.is_array() || list.empty()) throw Wrong{fmt::format("\"{}\" of {} is not a list", key, where)};
  for (auto const& item : list) {
    if (!item.is_string() || item.get<std::string>().empty()) {
      throw Wrong{fmt::format("\"{}\" of {} holds something that is not a text", key, where)};
    }
    found.push_back(item.get<std::string>());
  }
  return found;
}

Refusal refusal(const json& object, const std::string& where, bool with_symbols) {
  only(object, {"rule", "symbols", "why", "instead"}, where);
  Refusal found;
  found.rule = text(object, "rule", where);
  if (with_symbols) found.symbols = patterns(object, "symbols", where);
  found.why = text(object, "why", where);
  found.instead = text(object, "instead", where);
  return found;
}

std::vector<Refusal> refusals(const json& list, const std::string& where) {
  if (!list.is_array() || list.empty()) throw Wrong{fmt::format("{} is not a list", where)};
  std::vector<Refusal> found;
  for (auto const& item : list) found.push_back(refusal(item, where, true));
  return found;
}

SymbolGroup group(const json& object) {
  SymbolGroup found;
  found.name = text(object, "name", "a group");
  std::string const where = fmt::format("group \"{}\"", found.name);
  only(object, {"name", "symbols", "libraries", "refuse", "allow", "rest"}, where);
  if (object.contains("symbols")) found.symbols = patterns(object, "symbols", where);
  if (object.contains("libraries")) found.libraries = patterns(object, "libraries", where);
  if (found.symbols.empty() == found.libraries.empty()) {
    throw Wrong{fmt::format("{} needs either \"symbols\" or \"libraries\"", where)};
  }
  if (object.contains("refuse")) found.refuse = refusals(object.at("refuse"), where);
  if (object.contains("allow")) found.allow = patterns(object, "allow", where);
  auto const& rest = member(object, "rest", where);
  if (rest == "allow") return found;
  found.rest = refusals(rest, where);
  // Else a symbol that no pattern has would be allowed by oversight.
  auto const& last = found.rest.back().symbols;
  if (std::find(last.begin(), last.end(), "*") == last.end()) {
    throw Wrong{fmt::format("the last entry of \"rest\" of {} does not match everything", where)};
  }
  return found;
}

}  // namespace

bool matches(const Patterns& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
  });
}

Result<ObjectRules> parse_object_rules(std::string_view text) {
  auto const parsed = util::parse_json(text);
  if (!parsed) return fail(Outcome::internal_error, "the rules for objects: " + parsed.error().message);
  try {
    only(*parsed, {"groups", "libraries", "unknown", "needed", "constructors", "linker_symbols"}, "the file");
    ObjectRules rules;
    for (auto const& item : member(*parsed, "groups", "the file")) rules.groups.push_back(group(item));
    rules.libraries = refusal(member(*parsed, "libraries", "the file"), "\"libraries\"", false);
    rules.unknown = refusal(member(*parsed, "unknown", "the file"), "\"unknown\"", false);
    rules.needed = patterns(*parsed, "needed", "the file");
    rules.constructors = patterns(*parsed, "constructors", "the file");
    rules.linker_symbols = patterns(*parsed, "linker_symbols", "the file");
    return rules;
  } catch (const Wrong& wrong) {
    return fail(Outcome::internal_error, "the rules for objects: " + wrong.what);
  }
}

Result<ObjectRules> object_rules() { return parse_object_rules(objects_json); }

const Refusal* refusal_of(const SymbolGroup& group, const std::string& name) {
  auto const find = [&](const std::vector<Refusal>& refusals) -> const Refusal* {
    auto const found = std::find_if(refusals.begin(), refusals.end(),
                                    [&](const Refusal& refusal) { return matches(refusal.symbols, name); });
    return found == refusals.end() ? nullptr : &*found;
  };
  if (const Refusal* refused = find(group.refuse)) return refused;
  if (matches(group.allow, name)) return nullptr;
  return find(group.rest);
}

}  // namespace cuda_agent::policy
