// Runs compilers side by side.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "build/work.hpp"
#include "cuda_agent/error.hpp"
#include "exec/child.hpp"
#include "util/deadline.hpp"
#include "util/progress.hpp"

namespace cuda_agent::build {

struct Job {
  std::string label;  ///< for progress and messages: "kernels/axpby.cu"
  std::string verb = "compiling";
  std::function<exec::Command()> command;  ///< asked when the job starts, so that it can use what `after` made
  /// Instead of `command`, where one process is not all; asked when the job starts.
  std::function<Result<std::unique_ptr<Work>>()> start;
  std::function<void()> succeeded;   ///< called when it has ended well, before those `after` it start; may be empty
  double timeout = 0;                ///< seconds
  std::optional<std::size_t> after;  ///< index of a job that must have ended before (well or not)
  bool optional = false;             ///< its failure does not stop the others
};

struct JobOutcome {
  enum class State { not_run, finished, timed_out, interrupted, not_started };
  State state = State::not_run;  ///< not_run also when it was stopped because another job had failed
  exec::ExitStatus status;       ///< when finished
  std::string output;            ///< bounded, raw
  double start = 0;              ///< seconds of the steady clock
  double seconds = 0;            ///< that it took
  std::optional<Error> error;    ///< when not_started (the tool could not be started)

  bool ok() const { return state == State::finished && status.ok(); }
};

/// Runs at most `parallel` jobs at a time, in order. After the first failure no job is started any more; those that
/// run get a moment to end, since their messages are wanted too, and are then killed. The same at the deadline
/// (timed_out) and on a signal (interrupted).
std::vector<JobOutcome> run_jobs(const std::vector<Job>& jobs, int parallel, util::Progress& progress,
                                 util::Deadline deadline);

}  // namespace cuda_agent::build
