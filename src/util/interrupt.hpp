// SIGINT and SIGTERM as a flag and a descriptor, so that every wait can end early and every child is reaped.
#pragma once

#include "cuda_agent/error.hpp"

namespace cuda_agent::util {

/// Installs the handlers (SIGINT, SIGTERM, SIGHUP; SIGPIPE ignored). Call once, from main, before any thread.
void install_interrupt_handlers();

/// True once a signal asked the program to stop, or the work at hand was cancelled.
bool interrupted() noexcept;
/// True once a signal did.
bool signalled() noexcept;

/// Ends every wait as a signal would, but for those of threads that ignore it: the work is no longer wanted.
void cancel() noexcept;
/// The next work is wanted. A signal that came stays.
void forget_cancel() noexcept;
/// The calling thread goes on in spite of `cancel`.
void ignore_cancel() noexcept;

/// Readable (poll) once interrupted. Never read from it. -1 when no handlers are installed.
int interrupt_fd() noexcept;

/// The error that an interrupted wait returns: Outcome::interrupted.
Error interrupted_error();

}  // namespace cuda_agent::util
