// An ask from the client's side: what needs no worker is done here, the rest by the session.
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include <spdlog/fmt/fmt.h>

#include "cli/ask.hpp"
#include "cli/outcome.hpp"
#include "device/cuda/cuda_backend.hpp"
#include "session/client.hpp"
#include "util/environment.hpp"
#include "util/files.hpp"
#include "util/interrupt.hpp"
#include "util/time.hpp"

namespace cuda_agent::cli {
namespace {

namespace fs = std::filesystem;

bool in_ci() {
  auto const ci = util::get_env("CI").value_or("");
  return ci == "true" || ci == "1";
}

/// Only what is asked again and again gains from it; a grade wants workers that nobody has had before.
bool wants_session(const AskOptions& options) {
  if (options.grade || options.judge.stage == judge::Stage::compile) return false;
  if (options.session) return *options.session;
  // Not measured on a GPU so far: there it has to be asked for.
  bool const gpu = options.judge.device == judge::Device::cuda || !options.judge.gpu.empty() ||
                   (options.judge.device == judge::Device::automatic && device::cuda_is_there());
  return !gpu && !in_ci();
}

/// The session of this place, started when there is none.
Result<session::Connection> reach(const session::Place& place, util::Progress& progress) {
  if (auto there = session::Connection::open(place)) return std::move(*there);
  auto started = session::Connection::start(place, {util::own_executable().string(), "session", "serve"},
                                            util::Deadline::after(std::chrono::seconds(10)));
  if (started) {
    progress.note(
        "started a session: it keeps torch and the task ready, and leaves when it was idle for 10 minutes "
        "(cuda-agent session stop, or --no-session)");
  }
  return started;
}

}  // namespace

std::optional<int> ask_session(const AskOptions& options, Console& console) {
  // A session runs this program again. Without a command line of its own this is another one, such as a test.
  if (console.arguments.empty() || !wants_session(options)) return std::nullopt;
  std::error_code gone;
  auto const folder = fs::current_path(gone);
  if (gone) return std::nullopt;
  auto const start = util::Clock::now();
  auto progress = make_progress(console, verbosity(options.output));
  auto const without = [&](const Error& error) {
    if (!util::interrupted()) progress->note(fmt::format("judging without a session: {}", error.message));
    // Cancelled, its answer is not wanted by anybody.
    return util::interrupted() && !util::signalled() ? std::optional(exit_code(Outcome::interrupted)) : std::nullopt;
  };
  auto const place = session::own_place();
  if (!place) return without(place.error());
  auto connection = reach(*place, *progress);
  if (!connection) return without(connection.error());
  if (auto announced = connection->announce(console.arguments, folder.string(), console.colour); !announced) {
    return without(announced.error());
  }
  auto front = answer_front(options, console, progress);
  if (front.code) return front.code;
  // Printed once it is whole: a session that is lost meanwhile leaves nothing behind.
  std::string out;
  session::Listener const listener{.out = [&](const std::string& text) { out += text; },
                                   .err = [&](const std::string& text) { console.err << text; }};
  auto const began = std::chrono::duration<double>(start.time_since_epoch()).count();
  // What waits for its turn is not limited by --timeout: an ask's own time begins when the session takes it.
  auto const limit =
      util::Deadline::after(std::chrono::duration<double>(options.judge.timeout) + std::chrono::hours(1));
  auto const code = connection->answer(began, front.compiled, listener, *progress, limit);
  if (code) {
    progress.reset();
    auto const printed = print_result(console, out);
    return *code != 0 ? *code : printed;
  }
  return without(code.error());
}

}  // namespace cuda_agent::cli
