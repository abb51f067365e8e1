// How a command ends: its result on standard output, or a failure as a person and a program expect it.
#pragma once

#include <string>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cuda_agent/error.hpp"

namespace cuda_agent::cli {

/// Prints a result. 0, or the code of environment_error, with a message, when it could not be written.
int print_result(Console& console, const std::string& text);

/// Prints a failure of a command that has no verdict of its own: a message with hints on standard error and, with
/// `json`, a verdict that holds nothing but the failure on standard output. Returns the exit code.
int print_failure(Console& console, const std::string& command, const Error& error, bool json);

Verbosity verbosity(const OutputOptions& options);

}  // namespace cuda_agent::cli
