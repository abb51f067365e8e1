// How the kernel's and bubblewrap's reports of an end become an ExitStatus.
#pragma once

#include <csignal>

#include "exec/child.hpp"

namespace cuda_agent::exec {

/// From waitid(2). bubblewrap says 128 + n for a command that signal n killed; with `from_bubblewrap` that becomes
/// signal n again.
ExitStatus exit_status(const siginfo_t& info, bool from_bubblewrap);

}  // namespace cuda_agent::exec
