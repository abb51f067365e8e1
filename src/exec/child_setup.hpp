// What a new child does between fork and exec.
#pragma once

#include <utility>
#include <vector>

#include <sys/types.h>

#include "exec/child.hpp"

namespace cuda_agent::exec {

/// Where it went wrong, as the child reports it.
enum class SetupStage : int { inherit, limits, enter_folder, confine, execute };

struct SetupFailure {
  SetupStage stage = SetupStage::execute;
  int error = 0;  ///< errno
};

/// Everything made ready before fork: between fork and exec only async-signal-safe calls are allowed.
struct ChildSetup {
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  const char* cwd = "/";
  int input = -1;
  int output = -1;
  int failure_pipe = -1;                     ///< CLOEXEC: its end of file is the news of a good exec
  std::vector<std::pair<int, int>> inherit;  ///< changed in the child
  Limits limits;
  int landlock = -1;  ///< rules to be put on; -1: none
  bool no_capabilities = false;
  bool no_new_privs = true;
  pid_t parent = 0;
};

/// Never returns: executes, or writes a SetupFailure to the pipe and exits. All signals must be blocked at the fork.
[[noreturn]] void become_command(ChildSetup& setup) noexcept;

}  // namespace cuda_agent::exec
