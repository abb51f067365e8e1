#include "session/client.hpp"

#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/wire.hpp"
#include "util/interrupt.hpp"
#include "util/json.hpp"

namespace cuda_agent::session {

using nlohmann::json;
using util::Deadline;

namespace {

Deadline shortly() { return Deadline::after(std::chrono::seconds(5)); }

/// In the forked child: nothing of the caller's stays but the environment. A tool that waits for the caller's pipes to
/// be closed must not wait for the session.
[[noreturn]] void become_session(const char* const* argv, const char* log) {
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  int const nothing = ::open("/dev/null", O_RDWR);
  int const words = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(words >= 0 ? words : nothing, STDOUT_FILENO);
  ::dup2(words >= 0 ? words : nothing, STDERR_FILENO);
  ::close_range(3, ~0U, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int const number : {SIGINT, SIGHUP, SIGTERM, SIGPIPE}) ::signal(number, SIG_DFL);
  (void)!::chdir("/");
  ::execv(argv[0], const_cast<char* const*>(argv));
  ::_exit(127);
}

}  // namespace

std::optional<Connection> Connection::open(const Place& place) {
  auto socket = connect_to(place);
  if (!socket) return std::nullopt;
  return Connection(std::move(*socket));
}

Result<Connection> Connection::start(const Place& place, const std::vector<std::string>& command, Deadline deadline) {
  std::vector<const char*> argv;
  argv.reserve(command.size() + 1);
  for (auto const& word : command) argv.push_back(word.c_str());
  argv.push_back(nullptr);
  std::string const log = place.log().string();
  pid_t const pid = ::fork();
  if (pid < 0) {
    return fail(Outcome::environment_error, fmt::format("cannot start a session: {}", std::strerror(errno)));
  }
  if (pid == 0) become_session(argv.data(), log.c_str());
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  for (;;) {
    if (auto connection = open(place)) return std::move(*connection);
    if (util::interrupted()) return fail(util::interrupted_error());
    if (deadline.expired()) {
      return fail(Outcome::environment_error, "the session did not come up", {fmt::format("its words are in {}", log)});
    }
    pollfd interrupt{util::interrupt_fd(), POLLIN, 0};
    constexpr int step_ms = 5;
    ::poll(&interrupt, 1, step_ms);
  }
}

Result<void> Connection::announce(const std::vector<std::string>& arguments, const std::string& folder, bool colour) {
  json const message = {{"op", "ask"}, {"arguments", arguments}, {"folder", folder}, {"colour", colour}};
  return m_channel.send(message.dump(-1, ' ', false, json::error_handler_t::replace), {}, shortly());
}

Result<int> Connection::answer(double began, const json& compiled, const Listener& listener, util::Progress& progress,
                               Deadline deadline) {
  json const go = {{"op", "go"}, {"began", began}, {"compiled", compiled}};
  if (auto sent = m_channel.send(go.dump(), {}, shortly()); !sent) return fail(sent.error());
  // The first word comes at once, whatever is being judged; a session that is stopped or stuck does not say it.
  for (bool first = true;; first = false) {
    auto const message = m_channel.receive(message_limit, first ? shortly() : deadline);
    if (!message && first && message.error().outcome == Outcome::timeout) {
      return fail(Outcome::environment_error, "the session does not answer");
    }
    if (!message) return fail(message.error());
    auto const said = util::parse_json(message->text, {.bytes = message_limit, .depth = 8});
    if (!said || !said->is_object() || said->empty()) {
      return fail(Outcome::environment_error, "the session said something that is not part of its protocol");
    }
    auto const& kind = said->begin().key();
    auto const& value = said->begin().value();
    if (kind == "code" && value.is_number_integer()) return value.get<int>();
    if (kind == "place" && value.is_number_integer()) {
      if (value.get<int>() > 0)
        progress.step(fmt::format("waiting for the session's other asks: place {}", value.get<int>()));
    } else if (kind == "failed" && value.is_string()) {
      return fail(Outcome::environment_error, fmt::format("the session failed: {}", value.get<std::string>()));
    } else if (value.is_string()) {
      auto const text = value.get<std::string>();
      if (kind == "step") progress.step(text);
      if (kind == "note") progress.note(text);
      if (kind == "out") listener.out(text);
      if (kind == "err") listener.err(text);
    }
  }
}

Result<json> Connection::request(const std::string& op, Deadline deadline) {
  if (auto sent = m_channel.send(json{{"op", op}}.dump(), {}, deadline); !sent) return fail(sent.error());
  auto const message = m_channel.receive(message_limit, deadline);
  if (!message) return fail(message.error());
  auto said = util::parse_json(message->text, {.bytes = message_limit, .depth = 8});
  if (!said || !said->is_object()) return fail(Outcome::environment_error, "the session's answer is no object");
  return std::move(*said);
}

}  // namespace cuda_agent::session
