// Symbols that nothing provides. A shared object may be linked with them; it then fails when Python imports it, with
// one mangled name. This check names them, and who uses them, right after the link.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cuda_agent/error.hpp"

namespace cuda_agent::build {

struct UndefinedSymbol {
  std::string name;                  ///< demangled
  std::vector<std::string> used_by;  ///< sources whose objects refer to it
};

/// The symbols of `library` that neither the libraries it needs (and those that they need) nor Python define.
/// `objects`: source name and object file, to say who uses them. `folders` are searched before the system's.
/// A needed library that is not here (libcuda.so.1 on a machine without a driver) gets the benefit of the doubt.
/// Errors: environment_error when `library` cannot be read.
Result<std::vector<UndefinedSymbol>> find_undefined_symbols(
    const std::filesystem::path& library, const std::vector<std::pair<std::string, std::filesystem::path>>& objects,
    const std::vector<std::filesystem::path>& folders);

}  // namespace cuda_agent::build
