// What the rules of the policy find (docs/policy.md). No finding: the candidate keeps the rules.
#pragma once

#include <string>

namespace cuda_agent::policy {

/// One place where a candidate breaks a rule. All texts are escaped: they can be shown as they are.
struct Finding {
  std::string rule;      ///< stable name; `cuda-agent policy explain RULE` says more
  std::string file;      ///< relative to the workspace
  std::string message;   ///< what was found, in one sentence
  std::string reached;   ///< how it comes to run: "forward → _helper → torch.relu"; empty where that says nothing
  std::string hint;      ///< what to do instead
  int line = 0;          ///< 1-based; 0 = the whole file
  int column = 0;        ///< 1-based; 0 = the whole line
  std::string source{};  ///< the line itself, shortened; empty where there is none
};

}  // namespace cuda_agent::policy
