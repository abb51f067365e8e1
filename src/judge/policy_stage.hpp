// Design section 6 in an ask: the rules on model_new.py and the allow-list over what was built.
#pragma once

#include <filesystem>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "build/extension.hpp"
#include "build/toolchain.hpp"
#include "cuda_agent/error.hpp"
#include "cuda_agent/verdict.hpp"
#include "util/deadline.hpp"

namespace cuda_agent::judge {

/// What the rules have found in files that were checked lately, by content: whoever edits a kernel asks again about the
/// same model_new.py. In the memory of a session only.
class RulesMemo {
 public:
  /// Null when it is not known.
  const std::vector<PolicyFinding>* find(const std::string& key);
  void note(const std::string& key, std::vector<PolicyFinding> findings);

 private:
  std::list<std::pair<std::string, std::vector<PolicyFinding>>> m_known;  ///< the one used last is first
};

/// Of the content of everything that the findings depend on: `file`, the rules, who reads them. None: something cannot
/// be read, which is not to be remembered.
std::optional<std::string> rules_key(const std::filesystem::path& file, const build::Interpreter& interpreter,
                                     const std::filesystem::path& policy);

/// What the rules find in model_new.py of a snapshot; nothing where it has none. The file is read in a sandbox, in a
/// process of its own, and never run. `policy` is the folder with policy.json and rules/. What
/// `memo` has is not asked for again.
/// Errors: environment_error (no interpreter for the rules), timeout, interrupted.
Result<std::vector<PolicyFinding>> check_model_new(const std::filesystem::path& snapshot,
                                                   const build::Interpreter& interpreter,
                                                   const std::filesystem::path& policy, util::Deadline deadline,
                                                   RulesMemo* memo = nullptr);

/// What the allow-list refuses in a built extension. Errors: environment_error (a file cannot be read).
Result<std::vector<PolicyFinding>> check_built(const build::ExtensionResult& built);

/// What a candidate's worker says that ModelNew has called so far (its answer to "witness"). Errors: crash when the
/// answer is not what a worker gives; policy_violation when the recorder was taken away.
Result<Witness> read_witness(const nlohmann::json& reply);

/// The operators seen that the rules refuse. Errors: environment_error (the policy's file).
Result<std::vector<PolicyFinding>> check_witness(const Witness& witness, const std::filesystem::path& policy);

/// A candidate in one call of which no kernel ran at all, its own or an allowed library's, breaks the rule
/// no-own-kernel: copies are no work.
Result<std::vector<PolicyFinding>> check_trace(const std::vector<TracedKernel>& kernels,
                                               const std::filesystem::path& policy);

/// The verdict of a candidate that breaks rules; `findings` is not empty.
Error policy_violation(const std::vector<PolicyFinding>& findings);

}  // namespace cuda_agent::judge
