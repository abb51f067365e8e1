// System-call filters that a worker puts on itself, once it is ready and before it hears of a candidate. Made here with
// libseccomp, so that the worker module needs no library of its own.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "cuda_agent/error.hpp"

namespace cuda_agent::exec {

enum class Seal {
  /// No program is executed, no process made, no other one traced or read; threads are allowed.
  no_new_processes,
  /// No threads either.
  no_new_threads,
};

/// The filter as an array of `struct sock_filter` of this machine, hexadecimal. A process without namespaces of its own
/// is told by its number: it then sends no signals to others, changes none's limits, priority or processors, makes no
/// sockets but pairs, and leaves no shared memory and no queues. Errors: environment_error.
Result<std::string> seal_filter(Seal seal, std::optional<pid_t> among_others = {});

}  // namespace cuda_agent::exec
