// The compiled half of the policy: an allow-list over what the built extension takes from others and offers to them
// (docs/policy-objects.md). Names in a source can be hidden from a reader; what the linker has to resolve cannot.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cuda_agent/error.hpp"

namespace cuda_agent::policy {

/// One thing that the policy refuses. All texts are escaped: they can be shown as they are.
struct ObjectFinding {
  std::string rule;                  ///< stable name, as in objects.json and docs/policy-objects.md
  std::string symbol;                ///< demangled; a library, a section or a function where it is about one
  std::vector<std::string> used_by;  ///< source files, as ObjectCheck names them; empty: the extension as a whole
  std::string message;               ///< what was found, where, in one sentence
  std::string hint;                  ///< what to do instead
};

struct ObjectCheck {
  std::filesystem::path extension;                                     ///< the linked cuda_extension.so
  std::vector<std::pair<std::string, std::filesystem::path>> objects;  ///< source name and object file
  std::vector<std::filesystem::path> folders;  ///< where its libraries lie (torch, CUDA), searched before the system's
};

/// Empty: nothing is refused. In order: imports, exports, how it is linked, constructors, instructions.
/// Errors: environment_error when a file cannot be read.
Result<std::vector<ObjectFinding>> check_objects(const ObjectCheck& check);

}  // namespace cuda_agent::policy
