// A case of the selftest: a folder with a case.json, and what that says (docs/exploits.md).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "cuda_agent/error.hpp"

namespace cuda_agent::selftest {

enum class Kind { exploit, honest };

/// What the judge must answer.
struct Expectation {
  std::vector<std::string> outcomes;     ///< one of these
  std::vector<int> exit_codes;           ///< and one of these
  std::optional<std::string> message;    ///< regular expression that the message must match
  std::optional<std::string> rule;       ///< of the policy; must be among the broken ones
  std::optional<nlohmann::json> reward;  ///< a number or null
  std::optional<double> most_speedup;    ///< over eager: an exploit that is bound and not refused gains nothing
};

struct Case {
  std::filesystem::path folder;
  Kind kind = Kind::exploit;
  std::string name;  ///< "exploits/zeros"
  std::string what;  ///< what it does
  std::string row;   ///< the attack that it stands for, "Output: returns zeros, …"
  std::string task;  ///< the folder of tasks/ that it starts from; empty: none
  std::string command = "verify";
  std::vector<std::string> flags;            ///< more of the command's
  std::map<std::string, std::string> links;  ///< symbolic links to be made: name in the workspace, target
  std::string layer;                         ///< what catches it; empty for an honest case
  std::vector<std::string> also;             ///< other layers that would catch it by themselves
  std::string honest_twin;
  std::string variant_of;  ///< another case that shows the same; empty: none
  std::string gap;         ///< why no layer behind the policy catches it; empty: one does
  bool needs_cuda = false;
  bool text = false;  ///< judged without --json
  Expectation expect;

  /// Exploits that another layer catches are judged without the policy, or that would come first.
  bool with_policy() const { return kind == Kind::honest || layer == "policy"; }
  /// Whether nothing catches it, as is known: then there is nothing to test.
  bool known_gap() const { return !gap.empty() && layer != "policy"; }
  /// All layers that catch it.
  std::vector<std::string> layers() const;
  /// Whether the policy is one of them.
  bool policy_refuses() const;
};

/// The case in a folder. Errors (environment_error): no case.json, or one that says something impossible; named.
Result<Case> read_case(const std::filesystem::path& folder, Kind kind);

/// All cases below `root`, exploits first, by name. Errors: as read_case; a folder is missing, or a case that another
/// one names.
Result<std::vector<Case>> read_cases(const std::filesystem::path& root);

}  // namespace cuda_agent::selftest
