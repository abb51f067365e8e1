// The client's side of a session: finds it or starts it, and lets it answer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cuda_agent/error.hpp"
#include "exec/channel.hpp"
#include "session/place.hpp"
#include "util/deadline.hpp"
#include "util/progress.hpp"

namespace cuda_agent::session {

/// What a session's answer is made of, as it comes.
struct Listener {
  std::function<void(const std::string& text)> out;
  std::function<void(const std::string& text)> err;
};

class Connection {
 public:
  /// To the session at `place`; none when nobody listens there.
  static std::optional<Connection> open(const Place& place);
  /// Starts one, as a process of its own with nothing of ours but the environment, and waits until it listens.
  /// `command`: the program and its arguments. Errors: environment_error, timeout.
  static Result<Connection> start(const Place& place, const std::vector<std::string>& command, util::Deadline deadline);

  /// An ask is on its way.
  Result<void> announce(const std::vector<std::string>& arguments, const std::string& folder, bool colour);
  /// The answer to it: the exit code. Errors: interrupted, timeout; environment_error when the session was lost before
  /// anything was printed.
  /// `began`: when this process did, seconds of the steady clock.
  Result<int> answer(double began, const nlohmann::json& compiled, const Listener& listener, util::Progress& progress,
                     util::Deadline deadline);
  /// {"op": …} and what is answered.
  Result<nlohmann::json> request(const std::string& op, util::Deadline deadline);

 private:
  explicit Connection(util::Fd socket) : m_channel(std::move(socket)) {}
  exec::Channel m_channel;
};

}  // namespace cuda_agent::session
