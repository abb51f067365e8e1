// `watch`: judges the workspace at every save. The newest save wins: what is being judged is cancelled.
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <ostream>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <poll.h>
#include <spdlog/fmt/fmt.h>

#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/outcome.hpp"
#include "util/interrupt.hpp"
#include "util/text.hpp"
#include "workspace/changes.hpp"
#include "workspace/workspace.hpp"

namespace cuda_agent::cli {
namespace {

namespace fs = std::filesystem;

/// Between two looks at the files. A save is taken when two looks agree: an editor writes several files, or one in
/// pieces.
constexpr std::chrono::milliseconds between_looks{100};

/// This thread judges, since children end with the thread that made them; another one looks at the files.
class Watch {
 public:
  Watch(const AskOptions& options, fs::path root, Console& console)
      : m_options(options), m_root(std::move(root)), m_console(console), m_progress(progress()) {
    m_judged = look();
    m_seen = m_judged;
  }

  int run() {
    std::jthread const looking([this](const std::stop_token& stop) { look_out(stop); });
    m_progress->note(
        fmt::format("judging {} at every save, until Ctrl-C", util::escape_untrusted(m_root.string(), 512)));
    while (!util::signalled()) {
      if (auto const failed = judge(); failed != 0) return failed;
      m_progress->step("waiting for the next save");
      std::unique_lock guard(m_mutex);
      m_news.wait(guard, [this] { return m_saved || util::signalled(); });
      if (util::signalled()) break;
      auto const changed = workspace::changed_files(m_judged, m_seen);
      m_judged = m_seen;
      m_saved = false;
      guard.unlock();
      constexpr std::size_t most = 3;
      auto names =
          std::vector(changed.begin(), changed.begin() + static_cast<std::ptrdiff_t>(std::min(changed.size(), most)));
      if (changed.size() > most) names.push_back(fmt::format("{} more", changed.size() - most));
      m_progress->note(fmt::format("saved: {}", util::escape_untrusted(util::join(names, ", "), 512)));
    }
    return exit_code(Outcome::interrupted);
  }

 private:
  std::unique_ptr<util::Progress> progress() {
    return make_progress(m_console, m_options.output.quiet ? Verbosity::quiet : Verbosity::normal);
  }

  workspace::FileStates look() const { return workspace::file_states(m_root, m_options.task); }

  /// The same command line as `run`, its answer kept back until it is known to be wanted.
  int judge() {
    {
      std::lock_guard const guard(m_mutex);
      m_judging = true;
    }
    auto arguments = m_console.arguments;
    arguments.front() = "run";
    std::ostringstream out;
    Console own{out, m_console.err, m_console.colour, m_console.updating, arguments, nullptr};
    m_progress.reset();  // the ask has one of its own
    (void)run_line(arguments, own);
    m_progress = progress();
    {
      std::lock_guard const guard(m_mutex);
      m_judging = false;
      bool const stale = util::interrupted();
      util::forget_cancel();
      if (stale) return 0;
    }
    return print_result(m_console, out.str());
  }

  void look_out(const std::stop_token& stop) {
    util::ignore_cancel();
    auto last = m_judged;
    while (!stop.stop_requested() && !util::signalled()) {
      pollfd interrupt{-1, POLLIN, 0};
      ::poll(&interrupt, 1, static_cast<int>(between_looks.count()));
      auto now = look();
      bool const settled = now == last;
      last = std::move(now);
      std::lock_guard const guard(m_mutex);
      if (!settled || last == m_seen) continue;
      m_seen = last;
      m_saved = true;
      if (m_judging) util::cancel();
      m_news.notify_all();
    }
    std::lock_guard const guard(m_mutex);  // or it could come between the other thread's look and its wait
    m_news.notify_all();
  }

  const AskOptions& m_options;
  fs::path m_root;
  Console& m_console;
  std::unique_ptr<util::Progress> m_progress;
  std::mutex m_mutex;
  std::condition_variable m_news;
  workspace::FileStates m_judged;  ///< when the last judgement began
  workspace::FileStates m_seen;    ///< when the last save was taken
  bool m_saved = false;            ///< since the last judgement began
  bool m_judging = false;
};

}  // namespace

int run_watch(const AskOptions& options, Console& console) {
  auto const failed = [&](const Error& error) { return print_failure(console, "watch", error, options.output.json); };
  if (console.arguments.empty()) {
    return failed({Outcome::internal_error, "watch needs the command line that it was started with"});
  }
  auto const workspace = workspace::open_workspace(options.workspace);
  if (!workspace) return failed(workspace.error());
  return Watch(options, workspace->root, console).run();
}

void setup_watch(CLI::App& app, Action& action) {
  auto options = std::make_shared<AskOptions>();
  auto* const command = add_command(app, "watch", "Run at every save; the newest one wins");
  add_run_flags(*command, *options);
  command->callback(
      [options, &action] { action = [options](Console& console) { return run_watch(*options, console); }; });
}

}  // namespace cuda_agent::cli
