// What a job does while it runs: one process, or several that together make one object.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cuda_agent/error.hpp"
#include "exec/child.hpp"

namespace cuda_agent::build {

/// Destruction kills and reaps all that runs.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  virtual ~Work() = default;

  /// Never blocks; takes what was printed and starts what can start now. How it ended, once it has; an error when
  /// something could not be started.
  virtual std::optional<Result<exec::ExitStatus>> poll() = 0;
  /// Idempotent. Returns when nothing runs any more.
  virtual void kill() = 0;
  /// What was printed so far: bounded, raw.
  virtual std::string output() = 0;
};

/// One process.
Result<std::unique_ptr<Work>> start_process(const exec::Command& command);

}  // namespace cuda_agent::build
