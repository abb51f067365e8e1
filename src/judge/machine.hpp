// What an ask is judged with: an interpreter, compilers, and a device.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "build/toolchain.hpp"
#include "cuda_agent/error.hpp"
#include "device/backend.hpp"
#include "judge/judge.hpp"
#include "judge/supply.hpp"
#include "util/deadline.hpp"

namespace cuda_agent::judge {

struct Machine {
  build::Target target = build::Target::cpu;
  build::Interpreter interpreter;
  build::Toolchain toolchain;
  std::shared_ptr<device::Backend> backend;  ///< not opened yet; where an ask only compiles it may be the processor's
  std::string gpu_architecture;              ///< compute capability ("9.0") of the GPU; empty without one
};

/// Finds them, and chooses between GPU and CPU. Errors: environment_error for what is missing, usage_error for options
/// that do not go together or mean nothing on the device.
Result<Machine> find_machine(const Options& options, Supply& supply, util::Deadline deadline);

/// Versions and names for the verdict's `environment`; the device's own unless the ask only compiles.
std::map<std::string, std::string> facts_of(const Machine& machine, Stage stage);

}  // namespace cuda_agent::judge
