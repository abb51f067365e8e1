// The Python half of the policy: whether model_new.py computes with its own kernels. A checker written in Python reads
// the file's syntax tree in a process of its own; the judged code is never imported or run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cuda_agent/error.hpp"
#include "exec/sandbox.hpp"
#include "policy/policy.hpp"
#include "util/deadline.hpp"

namespace cuda_agent::policy {

/// The rule of a finding about a file at which the checker itself failed.
inline constexpr const char* cannot_be_checked = "cannot-be-checked";

struct PythonCheck {
  std::filesystem::path interpreter;  ///< Python 3.11 or newer; in a sandbox its path inside. Torch is not needed
  std::filesystem::path rules;        ///< the folder with cuda_agent_rules.py
  std::filesystem::path config;       ///< policy.json
  std::filesystem::path file;         ///< what is checked
  std::string name = "model_new.py";  ///< what findings call it
  /// When given, the checker runs in it; what it has to read is bound on top. The plan has to show the interpreter.
  std::optional<exec::SandboxPlan> sandbox{};
  double seconds = 30;                                      ///< time limit of the checker
  std::uint64_t cpu_seconds = 20;                           ///< and of its processor time
  std::uint64_t address_space = std::uint64_t{1024} << 20;  ///< bytes
};

/// The findings in the order of their lines. A file that makes the checker crash or run out of time or memory is a
/// finding (`cannot_be_checked`): whoever wrote it has to write it otherwise.
/// Errors: environment_error (no such interpreter, too old, broken rules or config), timeout (the caller's deadline),
/// interrupted, internal_error (an answer that is not understood).
Result<std::vector<Finding>> check_python(const PythonCheck& request, util::Deadline deadline);

}  // namespace cuda_agent::policy
