// SIGINT and SIGTERM as a flag and a descriptor, so that every wait can end early and every child is reaped.
#pragma once

#include "cuda_agent/error.hpp"

namespace cuda_agent::util {

/// Installs the handlers (SIGINT, SIGTERM, SIGHUP; SIGPIPE ignored). Call once, from main, before any thread.
void install_interrupt_handlers();

/// True once a signal asked the program to stop.
bool interrupted() noexcept;

/// Readable (poll) once interrupted. Never read from it. -1 when no handlers are installed.
int interrupt_fd() noexcept;

/// The error that an interrupted wait returns: Outcome::interrupted.
Error interrupted_error();

}  // namespace cuda_agent::util
