// One .cu faster than by `nvcc -c`: its host half and its device half side by side.
//
// nvcc runs its steps one after the other. Two thirds of them need nothing of each other, but for the module's name:
// cudafe++ makes it up, from the file's path and its first external symbol, and cicc is told. cicc, which reads the
// same text, comes to the same name by itself; it is compared before the object is made of both halves.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "build/build_room.hpp"
#include "build/flags.hpp"
#include "build/nvcc_plan.hpp"
#include "build/toolchain.hpp"
#include "build/work.hpp"
#include "util/deadline.hpp"

namespace cuda_agent::build {

struct Cache;

class SplitNvcc {
 public:
  /// Asks `nvcc --dryrun` for the steps, once for a toolchain and flags; the answer is kept in the cache. Nothing when
  /// the steps are not those that are known: then plain nvcc compiles, and a debug log says why.
  static std::optional<SplitNvcc> open(const Cache& cache, const Toolchain& toolchain, const Flags& flags,
                                       util::Deadline deadline);

  /// Only names without a character that nvcc might treat in a special way.
  static bool fits(const std::string& source);

  struct Request {
    const BuildRoom& room;
    std::string source;            ///< "kernels/axpby.cu"
    std::filesystem::path output;  ///< the folder that gets object.o and the lists of dependencies
    int parallel = 2;              ///< steps at a time; with two, headers are precompiled for the next time
    util::Deadline deadline;       ///< when the compilation will be stopped
    exec::Command plain;           ///< nvcc -c, for what the steps cannot do or say
  };
  /// What it prints and how it ends is what plain nvcc would have printed and how it would have ended. Where a step
  /// fails in a way of which the steps' own words do not tell the cause, plain nvcc is run. This object must outlive
  /// it.
  Result<std::unique_ptr<Work>> start(Request request) const;

  /// The lists of files that were read, of both halves and of plain nvcc, in the output folder.
  static std::vector<std::string> dependency_files();

 private:
  SplitNvcc(NvccPlan plan, const Cache& cache, const Toolchain& toolchain)
      : m_plan(std::move(plan)), m_cache(&cache), m_toolchain(&toolchain) {}

  NvccPlan m_plan;
  const Cache* m_cache;
  const Toolchain* m_toolchain;
};

}  // namespace cuda_agent::build
