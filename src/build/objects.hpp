// Sources → objects: those in the cache are taken from there, the others are compiled side by side.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "build/build_room.hpp"
#include "build/extension.hpp"
#include "build/flags.hpp"
#include "build/object_store.hpp"
#include "build/sources.hpp"

namespace cuda_agent::build {

struct ObjectsPlan {
  Target target = Target::cpu;
  Sources sources;                           ///< of the candidate; the judge's binding.cpp is added
  std::optional<Architecture> architecture;  ///< for nvcc
  int jobs = 1;
  double object_timeout = 120;
};

struct Objects {
  std::vector<BuiltObject> report;  ///< also of those that failed
  std::vector<KernelResources> kernels;
  std::vector<std::pair<std::string, StoredObject>> stored;  ///< by source; complete when there is no error
  std::optional<Error> error;
};

Objects build_objects(const ObjectsPlan& plan, const BuildRoom& room, const Toolchain& toolchain,
                      const Interpreter& interpreter, const Cache& cache, util::Progress& progress,
                      util::Deadline deadline);

/// The judge's own file beside kernels/.
inline constexpr const char* module_source = "binding.cpp";

}  // namespace cuda_agent::build
