// Where an interpreter's folders are in a sandbox.
#pragma once

#include <filesystem>
#include <utility>
#include <vector>

#include "build/toolchain.hpp"
#include "exec/sandbox.hpp"

namespace cuda_agent::judge {

/// Where they are outside, except for those with a space in their name, which Inductor cannot pass to a compiler.
class InterpreterPlaces {
 public:
  explicit InterpreterPlaces(const build::Interpreter& interpreter);
  /// Read-only. What is moved is also where it was: pyvenv.cfg and the like name it.
  void bind(exec::SandboxPlan& plan) const;
  /// As they are on the host.
  std::vector<std::filesystem::path> outside() const;
  std::filesystem::path inside(const std::filesystem::path& path) const;

 private:
  void add(const std::filesystem::path& path);

  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> m_places;  ///< outside, inside
};

}  // namespace cuda_agent::judge
