// Child processes: started with argv (never a shell), an exact environment, limits, no inherited descriptor but those
// named; captured with bounds; always reaped, also when this process dies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "cuda_agent/error.hpp"
#include "exec/confinement.hpp"
#include "exec/sandbox.hpp"
#include "util/deadline.hpp"

namespace cuda_agent::exec {

struct Limits {
  std::optional<std::uint64_t> address_space;  ///< bytes (RLIMIT_AS)
  std::optional<std::uint64_t> file_size;      ///< bytes (RLIMIT_FSIZE)
  std::optional<std::uint64_t> cpu_seconds;
  std::optional<std::uint64_t> open_files;
  std::uint64_t core = 0;  ///< bytes of core dump
};

struct Command {
  std::vector<std::string> argv;           ///< argv[0] is an absolute path
  std::map<std::string, std::string> env;  ///< the whole environment
  std::filesystem::path cwd;               ///< inside the sandbox when there is one; empty = "/"
  Limits limits;
  std::optional<SandboxPlan> sandbox;                 ///< by bubblewrap; none = run directly
  std::optional<Confinement> confinement = {};        ///< by landlock, without a sandbox; none = not confined
  bool no_capabilities = false;                       ///< also where neither confines; both leave none
  std::vector<std::pair<int, int>> inherit;           ///< (our descriptor, its number in the child, >= 3)
  std::size_t capture_head = std::size_t{64} * 1024;  ///< bytes of stdout+stderr kept from the beginning
  std::size_t capture_tail = std::size_t{64} * 1024;  ///< and from the end; what lies between is counted and dropped
};

/// How a process ended.
struct ExitStatus {
  int code = 0;    ///< exit code, when signal == 0
  int signal = 0;  ///< killed by; also derived from bubblewrap's 128+n
  bool ok() const { return code == 0 && signal == 0; }
  /// "exit code 3", "killed by signal 11 (SIGSEGV)"
  std::string describe() const;
};

/// What a process printed, bounded.
struct Captured {
  std::string head;
  std::string tail;
  std::uint64_t dropped = 0;  ///< bytes between head and tail
  /// Head, a line that counts the dropped bytes, tail. Raw bytes: escape before showing (util/text.hpp).
  std::string text() const;
};

/// A running child in a session of its own. Destruction kills and reaps it and everything under it; so does its own
/// end, as soon as `poll` or `wait` sees it: what it left behind, daemons included, does not outlive it.
/// The kernel kills a child when the *thread* that spawned it ends: spawn what must live long from a long-lived thread.
class Child {
 public:
  virtual ~Child() = default;
  /// The process that we started: bubblewrap's outer process when sandboxed.
  virtual pid_t pid() const = 0;
  /// Non-blocking: has it ended?
  virtual std::optional<ExitStatus> poll() = 0;
  /// Waits; Outcome::timeout when the deadline passes (the child goes on), Outcome::interrupted on a signal,
  /// Outcome::environment_error when the sandbox could not be set up, so that the command never ran (with
  /// bubblewrap's words).
  virtual Result<ExitStatus> wait(util::Deadline deadline) = 0;
  /// SIGKILL to it and everything under it, then reaps. Idempotent.
  virtual void kill() = 0;
  /// Moves what is in the pipes into the capture; call it now and then, or let `wait` do it. Never blocks. A child
  /// whose pipe is full (1 MiB) stands still: use the forms of Channel::send and receive that take the child.
  virtual void drain() = 0;
  /// The descriptor to poll for output, -1 once the child has closed it. Never read from it.
  virtual int output_fd() const = 0;
  /// Readable once the child has ended (a pidfd); -1 on kernels without.
  virtual int exit_fd() const = 0;
  /// Standard output and standard error, merged in order of arrival when `merged`, as captured so far.
  virtual const Captured& output() const = 0;
};

/// Starts a child. stdin is /dev/null; stdout and stderr go to one captured pipe. The first call makes this process
/// the reaper of its orphaned descendants (PR_SET_CHILD_SUBREAPER). In a sandbox HOME is set to the plan's home.
/// Errors: environment_error when it cannot be started (names the executable and why), when a sandbox is asked for
/// that does not work here, or when something to be bound is missing.
Result<std::unique_ptr<Child>> spawn(const Command& command);

struct Completed {
  ExitStatus status;
  std::string output;  ///< bounded, raw
  double seconds = 0;
};

/// Runs to the end. Errors: timeout (child killed first), interrupted, environment_error (could not start).
Result<Completed> run(const Command& command, util::Deadline deadline);

}  // namespace cuda_agent::exec
