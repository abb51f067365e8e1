// compile, verify, profile, run: from the workspace to the verdict, and what is kept of it.
#include <chrono>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include "build/extension.hpp"
#include "cli/commands.hpp"
#include "cli/history.hpp"
#include "cli/installation.hpp"
#include "cli/outcome.hpp"
#include "cuda_agent/verdict.hpp"
#include "judge/judge.hpp"
#include "judge/reward.hpp"
#include "report/json.hpp"
#include "report/text.hpp"
#include "util/files.hpp"
#include "util/interrupt.hpp"
#include "util/text.hpp"
#include "util/time.hpp"
#include "workspace/workspace.hpp"

namespace cuda_agent::cli {

namespace fs = std::filesystem;

namespace {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(util::Clock::now() - m_start).count(); }

 private:
  util::Clock::time_point m_start = util::Clock::now();
};

/// One ask. Holds the workspace's lock and the scratch folder until the verdict has been printed and recorded.
class Ask {
 public:
  explicit Ask(const AskOptions& options)
      : m_options(options), m_deadline(util::Deadline::after(std::chrono::duration<double>(options.judge.timeout))) {}
  Ask(const Ask&) = delete;
  Ask& operator=(const Ask&) = delete;
  ~Ask() {
    // The snapshot's folders are read-only; the temporary folder alone could not remove them.
    if (!m_scratch.path().empty()) (void)workspace::remove_tree(m_scratch.path());
  }

  Verdict answer(util::Progress& progress) {
    Stopwatch const watch;
    auto verdict = judged(progress);
    if (verdict.command.empty()) verdict.command = m_options.command;
    if (verdict.time.empty()) verdict.time = util::utc_now();
    if (verdict.workspace.empty()) verdict.workspace = m_options.workspace;
    verdict.timings["wait"] = m_waited;
    verdict.timings["total"] = watch.seconds();
    return verdict;
  }

  /// Appends to the workspace's history; without a workspace there is none.
  Result<void> record(const Verdict& verdict) const {
    return m_workspace ? cli::record(*m_workspace, verdict) : Result<void>{};
  }

  /// A line of the judged source, for messages.
  std::optional<std::string> source_line(const std::string& file, int line) const {
    if (!m_snapshot || !m_snapshot->manifest.contains(file)) return std::nullopt;
    auto const text = util::read_file(m_snapshot->root / file, std::size_t{1} << 20);
    if (!text) return std::nullopt;
    auto const lines = util::split_lines(*text);
    auto const index = static_cast<std::size_t>(line) - 1;
    return index < lines.size() ? std::optional(lines[index]) : std::nullopt;
  }

 private:
  Verdict judged(util::Progress& progress) {
    auto const installation = find_installation();
    if (!installation) return failed(installation.error());
    if (auto ready = prepare(progress); !ready) return failed(ready.error());
    auto const cache = build::open_cache(m_workspace->state / "cache");
    if (!cache) return failed(cache.error());
    auto verdict = judge::judge(*m_workspace, *m_snapshot, m_options.judge, installation->judge, *cache,
                                m_scratch.path(), progress, m_deadline);
    keep_extension(verdict);
    return verdict;
  }

  /// Workspace, lock, scratch folder, snapshot: in this order, each resting on the one before.
  Result<void> prepare(util::Progress& progress) {
    auto workspace = workspace::open_workspace(m_options.workspace);
    if (!workspace) return fail(workspace.error());
    m_workspace = std::move(*workspace);

    Stopwatch const wait;
    auto const holder = fmt::format("cuda-agent {} {}", m_options.command, m_workspace->root.string());
    auto lock = workspace::Lock::acquire(*m_workspace, holder, m_deadline, [&](const std::string& other) {
      progress.note(fmt::format("waiting for the workspace, which is held by {}", other));
    });
    m_waited = wait.seconds();
    if (!lock) return fail(lock.error());
    m_lock = std::move(*lock);

    auto const parent = workspace::clean_scratch_parent(*m_workspace);
    if (!parent) return fail(parent.error());
    auto scratch = util::TemporaryFolder::make(*parent, fmt::format("ask-{}-", ::getpid()));
    if (!scratch) return fail(scratch.error());
    m_scratch = std::move(*scratch);

    auto const compile_only = m_options.judge.stage == judge::Stage::compile;
    auto snapshot = workspace::take_snapshot(*m_workspace, m_scratch.path() / "snapshot",
                                             {.model = !compile_only, .model_new = !compile_only});
    if (!snapshot) return fail(snapshot.error());
    m_snapshot = std::move(*snapshot);
    return {};
  }

  Verdict failed(const Error& error) const {
    Verdict verdict;
    if (m_workspace) verdict.workspace = m_workspace->root.string();
    verdict.contract = m_options.judge.contract == judge::Contract::kernelbench ? "kernelbench" : "cuda-agent";
    set_failure(verdict, util::interrupted() ? util::interrupted_error() : error);
    if (m_options.judge.stage == judge::Stage::run) {
      judge::RewardFacts facts;
      facts.outcome = verdict.outcome;
      facts.fault = verdict.fault;
      facts.seeds_replayed = m_options.judge.seed.has_value();
      verdict.reward = judge::provisional_reward(facts);
    }
    return verdict;
  }

  /// The judge built into the scratch folder, which goes. `compile` is asked for its result, so that is kept.
  void keep_extension(Verdict& verdict) const {
    if (!verdict.build || verdict.build->extension_path.empty()) return;
    fs::path const built = std::exchange(verdict.build->extension_path, {});
    verdict.not_measured.try_emplace("/build/extension_path", "removed when the ask ended; `compile` keeps it");
    if (m_options.judge.stage != judge::Stage::compile || verdict.outcome != Outcome::pass) return;
    auto const kept = m_workspace->state / "build" / "cuda_extension.so";
    auto content = util::read_file(built, std::size_t{1} << 31);
    auto done = content ? util::make_folders(kept.parent_path()) : tl::unexpected<Error>(content.error());
    // Written beside it and renamed: a process that has the old one loaded keeps it.
    if (done) done = util::write_file(kept, *content);
    if (done) {
      verdict.build->extension_path = kept.string();
      verdict.not_measured.erase("/build/extension_path");
    } else {
      set_failure(verdict, done.error());
    }
  }

  const AskOptions& m_options;
  util::Deadline m_deadline;
  std::optional<workspace::Workspace> m_workspace;
  std::optional<workspace::Lock> m_lock;
  util::TemporaryFolder m_scratch;
  std::optional<workspace::Snapshot> m_snapshot;
  double m_waited = 0;
};

/// What to do after a pass, when the judge has nothing better to say.
std::string next_step(const Verdict& verdict, const AskOptions& options) {
  auto const where = options.workspace == "." ? std::string() : " " + options.workspace;
  switch (options.judge.stage) {
    case judge::Stage::compile:
      return fmt::format("cuda-agent verify{} checks the candidate against the reference", where);
    case judge::Stage::verify:
      return fmt::format("cuda-agent run{} times it as well and gives the reward", where);
    case judge::Stage::profile:
    case judge::Stage::run:
      break;
  }
  auto const best = verdict.reward.value.value_or(3) >= 3;
  return best ? std::string() : "make the candidate faster and run this again: -v shows what was built and measured";
}

std::string rendered(const Verdict& verdict, const Ask& ask, const AskOptions& options, const Console& console) {
  if (options.output.json) return report::render_json(verdict) + "\n";
  report::TextStyle style;
  style.colour = console.colour;
  style.verbose = options.output.verbose;
  style.source_line = [&](const std::string& file, int line) { return ask.source_line(file, line); };
  return report::render_text(verdict, style);
}

}  // namespace

int run_ask(const AskOptions& options, Console& console) {
  Ask ask(options);
  auto progress = make_progress(console, verbosity(options.output));
  auto verdict = ask.answer(*progress);
  if (auto const next = next_step(verdict, options);
      verdict.outcome == Outcome::pass && verdict.hints.empty() && !next.empty()) {
    verdict.hints.push_back(next);
  }
  progress.reset();  // clears its line before the report
  if (auto const recorded = ask.record(verdict); !recorded) {
    console.err << "cuda-agent: warning: the verdict is not in the history: " << recorded.error().message << '\n';
  }
  auto const printed = print_result(console, rendered(verdict, ask, options, console));
  auto const code = exit_code(verdict.outcome);
  return code != 0 ? code : printed;
}

}  // namespace cuda_agent::cli
