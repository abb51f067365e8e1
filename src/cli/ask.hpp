// An ask inside of another command.
#pragma once

#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/console.hpp"
#include "cuda_agent/verdict.hpp"

namespace cuda_agent::cli {

/// The verdict of an ask, with its progress on standard error and nothing on standard output, not recorded.
Verdict answer_quietly(const AskOptions& options, Console& console);

/// The ask from here to its printed answer, without looking for a session. Returns the exit code.
int answer_ask(const AskOptions& options, Console& console);

/// What of an ask needs no worker: the build and the rules on it. A failure is printed and recorded like any other
/// answer, and its exit code returned; else what was compiled (Resident::compiled).
struct Front {
  std::optional<int> code;
  nlohmann::json compiled;
};
Front answer_front(const AskOptions& options, Console& console, std::unique_ptr<util::Progress>& progress);

/// Tells the session's supply what an ask will need.
int expect_ask(const AskOptions& options, const Resident& resident);

/// Lets a session answer, which is started if need be. None: it could not, and has said why.
std::optional<int> ask_session(const AskOptions& options, Console& console);

}  // namespace cuda_agent::cli
