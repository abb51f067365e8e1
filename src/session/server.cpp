#include "session/server.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/channel.hpp"
#include "session/wire.hpp"
#include "util/file_lock.hpp"
#include "util/files.hpp"
#include "util/interrupt.hpp"
#include "util/json.hpp"
#include "util/time.hpp"

namespace cuda_agent::session {
namespace {

using nlohmann::json;
using util::Clock;
using util::Deadline;

Deadline within_seconds() { return Deadline::after(std::chrono::seconds(5)); }

/// One connection. Its channel is read by the listening thread alone, until it says "go"; from then on only the judging
/// thread uses it, and the listening thread looks for its end.
struct Client {
  exec::Channel channel;
  Ask ask;
  bool asked = false;
  bool going = false;
  Clock::time_point since;                  ///< it waits for its turn
  std::optional<Clock::time_point> held{};  ///< first found to be held elsewhere
  int place = 0;                            ///< that it was told last
  Clock::time_point not_before{};           ///< tried again
};
using Shared = std::shared_ptr<Client>;

std::vector<std::string> pieces(const std::string& text) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at < text.size(); at += result.back().size()) {
    auto end = std::min(at + piece_bytes, text.size());
    // Not within a character of several bytes: a message is UTF-8 by itself.
    for (int back = 0; back < 3 && end < text.size() && (text[end] & 0xC0) == 0x80; ++back) --end;
    result.push_back(text.substr(at, end - at));
  }
  return result;
}

/// A client that does not read is as good as gone.
bool tell(Client& client, const json& message, Deadline deadline = within_seconds()) {
  std::string const text = message.dump(-1, ' ', false, json::error_handler_t::replace);
  return client.channel.send(text, {}, deadline).has_value();
}

class ToClient final : public util::Progress {
 public:
  explicit ToClient(Client& client) : m_client(client) {}
  void step(std::string_view text) override { say("step", text); }
  void note(std::string_view text) override { say("note", text); }

 private:
  void say(const char* kind, std::string_view text) {
    std::lock_guard const guard(m_mutex);
    if (m_gone) return;
    m_gone = !tell(m_client, {{kind, text}});
    if (m_gone) util::cancel();
  }

  Client& m_client;
  std::mutex m_mutex;
  bool m_gone = false;
};

class Server {
 public:
  Server(const Place& place, const ServerOptions& options, const Answers& answers)
      : m_place(place), m_options(options), m_answers(answers), m_wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  Result<void> run() {
    auto lock =
        util::FileLock::acquire(m_place.lock(), "cuda-agent session", Deadline::after(std::chrono::seconds(5)), {});
    if (!lock) return fail(lock.error());
    // What a session that was killed has left. Its words stay, up to a megabyte.
    std::error_code ignored;
    constexpr std::uintmax_t much = std::uintmax_t{1} << 20;
    if (std::filesystem::file_size(m_place.log(), ignored) > much && !ignored) {
      std::filesystem::resize_file(m_place.log(), 0, ignored);
    }
    std::filesystem::remove_all(m_place.workers(), ignored);
    if (auto made = util::make_folders(m_place.workers()); !made) return made;
    auto listening = listen_at(m_place);
    if (!listening) return fail(listening.error());
    m_listening = std::move(*listening);
    m_supply = std::make_unique<WarmSupply>(m_place.workers(), m_options.supply);
    spdlog::info("session {} is there, process {}", m_place.key, ::getpid());
    {
      std::jthread const listener([this](const std::stop_token& stop) { listen(stop); });
      judge();
      m_stopping = true;
      wake();
    }
    (void)::unlink(m_place.socket().c_str());
    m_listening.reset();
    m_supply.reset();
    std::filesystem::remove_all(m_place.workers(), ignored);
    spdlog::info("session {} has ended", m_place.key);
    return {};
  }

 private:
  void wake() const {
    std::uint64_t const one = 1;
    [[maybe_unused]] ssize_t const written = ::write(m_wake.get(), &one, sizeof one);
  }

  // --- the judging thread ------------------------------------------------------------------------------------------

  void judge() {
    auto last = Clock::now();
    while (!m_stopping && !util::signalled()) {
      Shared next;
      std::optional<Ask> coming;
      {
        std::unique_lock guard(m_mutex);
        // Standbys are looked after now and then.
        m_news.wait_for(guard, std::chrono::milliseconds(m_supply->busy() || !m_ready.empty() ? 50 : 500),
                        [&] { return m_stopping || oldest() != m_ready.end() || !m_coming.empty(); });
        if (auto const turn = oldest(); turn != m_ready.end()) {
          next = *turn;
          m_ready.erase(turn);
          m_running = next;
          if (!next->held) say_places();  // else it is tried again, in vain as a rule
        } else if (!m_coming.empty()) {
          coming = m_coming.front()->ask;
          m_coming.pop_front();
        }
        m_supply->note_waiting(static_cast<int>(
            std::count_if(m_clients.begin(), m_clients.end(), [](const Shared& one) { return one->asked; })));
      }
      if (next) {
        answer(next);
        last = Clock::now();
      } else if (coming) {
        expect(*coming);
        last = Clock::now();
      } else {
        m_supply->tend();
        std::lock_guard const guard(m_mutex);
        m_status = m_supply->status();
        if (Clock::now() - last > std::chrono::duration<double>(m_options.idle_seconds)) {
          spdlog::info("idle for {:.0f} seconds", m_options.idle_seconds);
          return;
        }
      }
    }
  }

  /// Of those whose turn it can be.
  std::deque<Shared>::iterator oldest() {
    auto const now = Clock::now();
    return std::find_if(m_ready.begin(), m_ready.end(), [&](const Shared& one) { return one->not_before <= now; });
  }

  /// It keeps its place, and is tried again in a moment.
  void put_back(const Shared& client, const HeldElsewhere& why) {
    bool const first = !client->held;
    if (first) client->held = Clock::now();
    client->not_before = Clock::now() + std::chrono::milliseconds(100);
    {
      std::lock_guard const guard(m_mutex);
      m_running.reset();
      bool const gone = util::interrupted();
      util::forget_cancel();
      if (gone || m_stopping) return;
      auto const place =
          std::find_if(m_ready.begin(), m_ready.end(), [&](const Shared& one) { return one->since > client->since; });
      m_ready.insert(place, client);
      if (first) say_places();
    }
    if (first) (void)tell(*client, {{"note", why.message}});
  }

  /// With the lock held, so nobody is waited for: who does not read misses it.
  void say_places() {
    int place = 0;
    for (auto const& waiting : m_ready) {
      if (waiting->place == ++place) continue;
      waiting->place = place;
      (void)tell(*waiting, {{"place", place}}, Deadline::after(std::chrono::seconds(0)));
    }
  }

  void expect(const Ask& ask) {
    try {
      m_answers.expect(ask, *m_supply);
    } catch (const std::exception& error) {
      spdlog::warn("preparing an ask: {}", error.what());
    }
  }

  void answer(const Shared& shared) {
    Client& client = *shared;
    auto const start = Clock::now();
    client.ask.since = std::chrono::duration<double>(client.since.time_since_epoch()).count();
    client.ask.waited = std::chrono::duration<double>(start - client.since).count();
    client.ask.held = client.held ? std::chrono::duration<double>(start - *client.held).count() : 0;
    std::ostringstream out;
    std::ostringstream err;
    int code = 1;
    std::string problem;
    {
      ToClient progress(client);
      try {
        code = m_answers.answer(client.ask, *m_supply, out, err, progress);
      } catch (const HeldElsewhere& why) {
        put_back(shared, why);
        return;
      } catch (const std::exception& error) {
        problem = error.what();
      }
    }
    bool gone = false;
    {
      // From here on its leaving cancels nothing.
      std::lock_guard const guard(m_mutex);
      m_running.reset();
      gone = util::interrupted();
      util::forget_cancel();
      ++m_answered;
      m_status = m_supply->status();
    }
    if (!gone) {
      if (problem.empty()) {
        for (auto const& piece : pieces(err.str())) (void)tell(client, {{"err", piece}});
        for (auto const& piece : pieces(out.str())) (void)tell(client, {{"out", piece}});
        (void)tell(client, {{"code", code}});
      } else {
        (void)tell(client, {{"failed", problem}});
      }
    }
    spdlog::info("{} in {}: {} after {:.2f} s", client.ask.arguments.empty() ? "" : client.ask.arguments.front(),
                 client.ask.folder, gone ? "left by its client" : fmt::format("exit code {}", code),
                 std::chrono::duration<double>(Clock::now() - start).count());
    wake();
  }

  // --- the listening thread ----------------------------------------------------------------------------------------

  void listen(const std::stop_token& stop) {
    util::ignore_cancel();
    while (!stop.stop_requested() && !m_stopping) {
      std::vector<pollfd> fds = {{m_listening.get(), POLLIN, 0}, {m_wake.get(), POLLIN, 0}};
      std::vector<Shared> polled;
      {
        std::lock_guard const guard(m_mutex);
        for (auto const& client : m_clients) {
          fds.push_back({client->channel.fd(), static_cast<short>(client->going ? POLLRDHUP : POLLIN | POLLRDHUP), 0});
          polled.push_back(client);
        }
      }
      if (::poll(fds.data(), fds.size(), 1000) < 0 && errno != EINTR) {
        spdlog::error("poll failed");
        m_stopping = true;
        m_news.notify_all();
        return;
      }
      if (util::signalled()) {
        m_news.notify_all();
        return;
      }
      if ((fds[1].revents & POLLIN) != 0) {
        std::uint64_t count = 0;
        [[maybe_unused]] ssize_t const taken = ::read(m_wake.get(), &count, sizeof count);
      }
      for (std::size_t i = 0; i < polled.size(); ++i) look_at(polled[i], fds[i + 2].revents);
      if ((fds[0].revents & POLLIN) != 0) take_new();
    }
  }

  void take_new() {
    util::Fd connection(::accept4(m_listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection || !is_own_user(connection.get())) return;
    auto client = std::make_shared<Client>();
    client->channel = exec::Channel(std::move(connection));
    std::lock_guard const guard(m_mutex);
    m_clients.push_back(std::move(client));
  }

  void look_at(const Shared& client, int events) {
    if (events == 0) {
      drop_if_finished(client);
      return;
    }
    if (client->going) {
      if ((events & (POLLHUP | POLLRDHUP | POLLERR)) != 0) leave(client);
      return;
    }
    auto message = client->channel.receive(message_limit, Deadline::after(std::chrono::seconds(0)));
    if (!message) {
      if (message.error().outcome != Outcome::timeout) leave(client);
      return;
    }
    auto const said = util::parse_json(message->text, {.bytes = message_limit, .depth = 8});
    if (!said || !said->is_object() || !take(client, *said)) leave(client);
  }

  /// What a client said. False: it makes no sense, or nothing more is to be said.
  bool take(const Shared& client, const json& said) {
    try {
      auto const op = said.value("op", std::string());
      if (op == "status") {
        std::lock_guard const guard(m_mutex);
        (void)tell(*client, status());
        return false;
      }
      if (op == "stop") {
        (void)tell(*client, {{"stopping", ::getpid()}});
        std::lock_guard const guard(m_mutex);
        m_stopping = true;
        if (m_running) util::cancel();
        m_news.notify_all();
        return false;
      }
      if (op == "ask" && !client->asked) {
        std::lock_guard const guard(m_mutex);
        client->ask.arguments = said.at("arguments").get<std::vector<std::string>>();
        client->ask.folder = said.at("folder").get<std::string>();
        client->ask.colour = said.value("colour", false);
        // Nothing else is done on a client's word.
        auto const command = client->ask.arguments.empty() ? std::string() : client->ask.arguments.front();
        if (command != "verify" && command != "profile" && command != "run") return false;
        client->asked = true;
        m_coming.push_back(client);
        m_news.notify_all();
        return true;
      }
      if (op == "go" && client->asked) {
        std::lock_guard const guard(m_mutex);
        client->since = Clock::now();
        client->ask.began = said.value("began", 0.0);
        client->ask.compiled = said.value("compiled", json::object());
        client->going = true;
        std::erase(m_coming, client);
        m_ready.push_back(client);
        client->place = static_cast<int>(m_ready.size()) - (m_running ? 0 : 1);  // 0: it is next
        (void)tell(*client, {{"place", client->place}}, Deadline::after(std::chrono::seconds(0)));
        m_news.notify_all();
        return true;
      }
    } catch (const json::exception& error) {
      spdlog::warn("a client said something else than the protocol asks for: {}", error.what());
    }
    return false;
  }

  void leave(const Shared& client) {
    std::lock_guard const guard(m_mutex);
    std::erase(m_clients, client);
    std::erase(m_coming, client);
    std::erase(m_ready, client);
    if (m_running == client) util::cancel();
  }

  void drop_if_finished(const Shared& client) {
    std::lock_guard const guard(m_mutex);
    bool const waits = std::find(m_ready.begin(), m_ready.end(), client) != m_ready.end();
    if (client->going && !waits && m_running != client) std::erase(m_clients, client);
  }

  json status() const {
    json result = m_status.is_object() ? m_status : json::object();
    result["process"] = ::getpid();
    result["key"] = m_place.key;
    result["answered"] = m_answered;
    result["running"] = m_running ? m_running->ask.folder : "";
    result["waiting"] = m_ready.size();
    result["seconds"] = std::chrono::duration<double>(Clock::now() - m_began).count();
    result["log"] = m_place.log().string();
    return result;
  }

  const Place& m_place;
  const ServerOptions& m_options;
  const Answers& m_answers;
  util::Fd m_wake;
  util::Fd m_listening;
  std::unique_ptr<WarmSupply> m_supply;
  Clock::time_point m_began = Clock::now();

  std::mutex m_mutex;
  std::condition_variable m_news;
  std::atomic<bool> m_stopping{false};
  std::list<Shared> m_clients;  ///< all that are connected
  std::deque<Shared> m_coming;  ///< have asked, and compile
  std::deque<Shared> m_ready;   ///< wait for their turn
  Shared m_running;
  json m_status;
  int m_answered = 0;
};

}  // namespace

Result<void> serve(const Place& place, const ServerOptions& options, const Answers& answers) {
  return Server(place, options, answers).run();
}

}  // namespace cuda_agent::session
