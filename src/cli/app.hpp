// From words to a command that can be run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cuda_agent/error.hpp"

namespace cuda_agent::cli {

/// "0.1.0".
std::string version();

/// A mistyped command or flag in `arguments` (without the program's name): usage_error with "did you mean".
std::optional<Error> unknown_word(const CLI::App& app, const std::vector<std::string>& arguments);

/// Parses `arguments`, and runs what they ask for. Help and version are printed on standard output; a mistake in the
/// line is a message on standard error (and a JSON object on standard output with --json) and exit code 2.
int run_line(const std::vector<std::string>& arguments, Console& console);

}  // namespace cuda_agent::cli
