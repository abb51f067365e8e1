// The file that says what the policy allows and refuses: policy.json, installed with the program.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cuda_agent/error.hpp"

namespace cuda_agent::policy {

/// What there is to say about one rule.
struct Rule {
  std::string name;
  std::string summary;  ///< what it refuses
  std::string why;
  std::string instead;      ///< what to do
  std::string wrong;        ///< an example that breaks it; empty where no text can show it
  std::string right;        ///< one that keeps it
  bool of_objects = false;  ///< about what was built (docs/policy-objects.md), not about model_new.py
};

/// The whole file. Errors: environment_error (missing, not JSON, another schema, a rule without its texts): the
/// installation is broken.
Result<nlohmann::json> read_policy_file(const std::filesystem::path& path);

/// The rules of a file that `read_policy_file` gave, in its order: those on model_new.py, then those on what was built.
/// A name that both have stands for one rule.
std::vector<Rule> rules_of(const nlohmann::json& policy);

/// Those of `operators` ("aten::relu") that a model must not call: all but what makes, views, copies or rearranges
/// memory. `policy` is what `read_policy_file` gave.
std::vector<std::string> refused_operators(const nlohmann::json& policy, const std::vector<std::string>& operators);

/// Errors: usage_error that names the rule meant, when one is near.
Result<Rule> find_rule(const std::vector<Rule>& rules, std::string_view name);

}  // namespace cuda_agent::policy
