#include "policy/policy_file.hpp"

#include <algorithm>
#include <cstddef>

#include <spdlog/fmt/fmt.h>

#include "util/files.hpp"
#include "util/json.hpp"
#include "util/text.hpp"

namespace cuda_agent::policy {

namespace {

using nlohmann::json;

constexpr std::string_view schema = "cuda-agent/policy/1";
constexpr std::size_t longest_file = std::size_t{1} << 20;

tl::unexpected<Error> broken(const std::filesystem::path& path, std::string_view why) {
  return fail(Outcome::environment_error,
              fmt::format("the policy {} cannot be used: {}", util::escape_untrusted(path.string()), why),
              {"install cuda-agent again: the file belongs to the program and is not meant to be edited"});
}

Rule rule_from_json(const json& text) {
  Rule rule;
  rule.name = text.at("name").get<std::string>();
  rule.summary = text.at("summary").get<std::string>();
  rule.why = text.at("why").get<std::string>();
  rule.instead = text.at("instead").get<std::string>();
  rule.wrong = text.at("wrong").get<std::string>();
  rule.right = text.at("right").get<std::string>();
  return rule;
}

std::vector<std::string> allowed_operators(const json& policy) {
  return policy.at("operators").get<std::vector<std::string>>();
}

/// A name, or its beginning and a star.
bool fits(std::string_view pattern, std::string_view name) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern;
}

}  // namespace

Result<json> read_policy_file(const std::filesystem::path& path) {
  auto const text = util::read_file(path, longest_file);
  if (!text) return broken(path, text.error().message);
  auto policy = util::parse_json(*text);
  if (!policy) return broken(path, policy.error().message);
  try {
    if (policy->at("schema") != schema) return broken(path, fmt::format("its schema is not {}", schema));
    rules_of(*policy);  // each has its texts
    allowed_operators(*policy);
  } catch (const json::exception& error) {
    return broken(path, error.what());
  }
  return policy;
}

std::vector<Rule> rules_of(const json& policy) {
  std::vector<Rule> rules;
  for (char const* const part : {"rules", "object_rules"}) {
    for (auto const& rule : policy.at(part)) {
      rules.push_back(rule_from_json(rule));
      rules.back().of_objects = std::string_view(part) == "object_rules";
    }
  }
  return rules;
}

std::vector<std::string> refused_operators(const json& policy, const std::vector<std::string>& operators) {
  constexpr std::string_view library = "aten::";
  auto const allowed = allowed_operators(policy);
  std::vector<std::string> refused;
  for (auto const& name : operators) {
    auto const own = std::string_view(name).substr(name.starts_with(library) ? library.size() : 0);
    bool const known =
        name.starts_with(library) &&
        std::any_of(allowed.begin(), allowed.end(), [&](auto const& pattern) { return fits(pattern, own); });
    if (!known) refused.push_back(name);
  }
  return refused;
}

Result<Rule> find_rule(const std::vector<Rule>& rules, std::string_view name) {
  std::vector<std::string> names;
  for (auto const& rule : rules) {
    if (rule.name == name) return rule;
    names.push_back(rule.name);
  }
  auto message = fmt::format("the policy has no rule '{}'", util::escape_untrusted(name, 128));
  if (auto const meant = util::closest(name, names)) message += fmt::format("; did you mean '{}'?", *meant);
  return fail(Outcome::usage_error, std::move(message), {"'cuda-agent policy show' lists the rules"});
}

}  // namespace cuda_agent::policy
