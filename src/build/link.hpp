// Objects → cuda_extension.so.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "build/objects.hpp"

namespace cuda_agent::build {

struct Linked {
  BuiltObject report;
  std::filesystem::path file;  ///< in the cache; empty when error is set
  std::string sha256;
  std::optional<Error> error;
};

/// Where the libraries that an extension is linked with lie, before the system's own.
std::vector<std::filesystem::path> library_folders(const Toolchain& toolchain, const Interpreter& interpreter);

/// Links, or takes the result from the cache when the same objects were linked before. A symbol that nothing provides
/// is an error (compile_error) that names it and who uses it.
Linked link_extension(const Objects& objects, Target target, double timeout, const BuildRoom& room,
                      const Toolchain& toolchain, const Interpreter& interpreter, const Cache& cache,
                      util::Progress& progress, util::Deadline deadline);

}  // namespace cuda_agent::build
