// An ask inside of another command.
#pragma once

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cuda_agent/verdict.hpp"

namespace cuda_agent::cli {

/// The verdict of an ask, with its progress on standard error and nothing on standard output, not recorded.
Verdict answer_quietly(const AskOptions& options, Console& console);

}  // namespace cuda_agent::cli
