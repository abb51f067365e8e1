// The resident side of a session: takes asks from clients, judges one at a time, oldest first, and keeps workers warm.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cuda_agent/error.hpp"
#include "session/place.hpp"
#include "session/warm_supply.hpp"
#include "util/progress.hpp"

namespace cuda_agent::session {

/// What a client wants: a command line, as typed in a folder.
struct Ask {
  std::vector<std::string> arguments;
  std::string folder;
  bool colour = false;  ///< its standard output takes colours
  double began = 0;     ///< when the client was started: seconds of the steady clock, which all processes share
  double since = 0;     ///< when it began to wait for its turn, by the same clock: who came first goes first
  double waited = 0;    ///< seconds from then on
  double held = 0;      ///< seconds since it was found to be held elsewhere; 0: it was not
  nlohmann::json compiled =
      nlohmann::json::object();  ///< {source: seconds} of what the client has compiled for it just now
};

/// Thrown by an answer whose workspace somebody else has, outside of the session: others go first meanwhile.
struct HeldElsewhere {
  std::string message;
};

/// What the command line brings.
struct Answers {
  /// May throw HeldElsewhere. Does what the ask says; results to `out`, which becomes the client's standard output.
  /// Returns the exit code.
  std::function<int(const Ask& ask, judge::Supply& supply, std::ostream& out, std::ostream& err,
                    util::Progress& progress)>
      answer;
  /// The ask is on its way: starts what it will need. Must not wait for long.
  std::function<void(const Ask& ask, judge::Supply& supply)> expect;
};

struct ServerOptions {
  double idle_seconds = 600;  ///< without an ask for so long, it leaves
  SupplyLimits supply;
};

/// Until stopped, idle for too long, or interrupted. Errors: environment_error, when another session has the place
/// or it cannot be used.
Result<void> serve(const Place& place, const ServerOptions& options, const Answers& answers);

}  // namespace cuda_agent::session
