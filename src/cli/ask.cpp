// compile, verify, profile, run, grade: from the workspace to the verdict, and what is kept of it.
#include "cli/ask.hpp"

#include <chrono>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include "build/extension.hpp"
#include "cli/commands.hpp"
#include "cli/history.hpp"
#include "cli/installation.hpp"
#include "cli/outcome.hpp"
#include "cli/signing.hpp"
#include "cuda_agent/verdict.hpp"
#include "judge/grade.hpp"
#include "judge/judge.hpp"
#include "judge/reward.hpp"
#include "judge/stopwatch.hpp"
#include "report/gantt.hpp"
#include "report/json.hpp"
#include "report/text.hpp"
#include "session/server.hpp"
#include "util/ed25519.hpp"
#include "util/files.hpp"
#include "util/hash.hpp"
#include "util/interrupt.hpp"
#include "util/text.hpp"
#include "util/time.hpp"
#include "workspace/workspace.hpp"

namespace cuda_agent::cli {

namespace fs = std::filesystem;

namespace {

/// One ask. Holds the workspace's lock and the scratch folder until the verdict has been printed and recorded.
class Ask {
 public:
  explicit Ask(const AskOptions& options, Resident* resident = nullptr)
      : m_options(options),
        m_resident(resident),
        m_deadline(util::Deadline::after(
            std::chrono::duration<double>(options.judge.timeout - (resident != nullptr ? resident->held : 0)))) {}
  Ask(const Ask&) = delete;
  Ask& operator=(const Ask&) = delete;
  ~Ask() {
    // The snapshot's folders are read-only; the temporary folder alone could not remove them.
    if (!m_scratch.path().empty()) (void)workspace::remove_tree(m_scratch.path());
  }

  Verdict answer(util::Progress& progress) {
    auto verdict = judged(progress);
    if (verdict.command.empty()) verdict.command = m_options.command;
    if (verdict.time.empty()) verdict.time = util::utc_now();
    if (verdict.workspace.empty()) verdict.workspace = m_options.workspace;
    verdict.timings["wait"] = m_waited;
    verdict.timings["total"] = util::steady_seconds() - m_began;
    verdict.began = m_began;
    verdict.timeline.insert(verdict.timeline.begin(), m_timeline.begin(), m_timeline.end());
    if (m_resident != nullptr) note_client(verdict);
    return verdict;
  }

  /// Appends to the workspace's history; without a workspace there is none.
  Result<void> record(const std::string& json) const {
    return m_workspace ? cli::record(*m_workspace, json) : Result<void>{};
  }

  /// The verdict as JSON; that of a grade signed.
  std::string in_json(const Verdict& verdict) const {
    return m_key ? signed_json(verdict, *m_key) : report::render_json(verdict);
  }

  /// Keeps a signed grade in a file of its own. Returns its path; none when there is nothing signed.
  Result<std::optional<fs::path>> keep_grade(const Verdict& verdict, const std::string& json) const {
    if (!m_key || !m_workspace) return std::optional<fs::path>();
    auto file = m_workspace->state / "grades" / fmt::format("{}-{}.json", verdict.time, ::getpid());
    if (auto made = util::make_folders(file.parent_path()); !made) return fail(made.error());
    if (auto written = util::write_file(file, json + "\n"); !written) return fail(written.error());
    return std::optional(std::move(file));
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
    if (m_options.grade) return graded(installation->judge, *cache, progress);
    auto verdict = one_ask(installation->judge, *cache, m_scratch.path(), progress);
    keep_extension(verdict);
    return verdict;
  }

  Verdict one_ask(const judge::Installation& installation, const build::Cache& cache, const fs::path& scratch,
                  util::Progress& progress) {
    auto verdict = judge::judge(*m_workspace, *m_snapshot, m_judge, installation, cache, scratch, progress, m_deadline,
                                m_resident != nullptr ? &m_resident->supply : nullptr);
    if (m_snapshot->own_task_differs) {
      verdict.protections.push_back({"pinned task", true,
                                     fmt::format("model.py is that of {}; the workspace's own is "
                                                 "another one and was not used",
                                                 m_options.task)});
    }
    return verdict;
  }

  /// The ask began with the client; what it compiled was in the cache by the time it got here.
  void note_client(Verdict& verdict) const {
    verdict.timings["total"] = util::steady_seconds() - m_resident->began;
    verdict.began = m_resident->began;
    verdict.timeline.push_back({"waiting for its turn", "session", m_resident->since, m_resident->waited});
    verdict.timings["wait"] += m_resident->waited;
    auto const& compiled = m_resident->compiled;
    if (!compiled.is_object() || !verdict.build) return;
    verdict.timings["build"] = compiled.value("build", 0.0);
    verdict.build->seconds = compiled.value("build", 0.0);
    for (auto const& one : compiled.value("timeline", nlohmann::json::array())) {
      verdict.timeline.push_back({one.at("what"), one.at("lane"), one.at("start"), one.at("seconds")});
    }
    auto const objects = compiled.value("objects", nlohmann::json::object());
    for (BuiltObject& one : verdict.build->objects) {
      if (!objects.contains(one.source)) continue;
      one.cached = false;
      one.seconds = objects.value(one.source, 0.0);
    }
  }

  /// Three asks, fewer when one fails.
  Verdict graded(const judge::Installation& installation, const build::Cache& cache, util::Progress& progress) {
    std::vector<Verdict> asks;
    while (static_cast<int>(asks.size()) < judge::grade_runs) {
      auto const number = asks.size() + 1;
      progress.note(fmt::format("ask {} of {}", number, judge::grade_runs));
      auto const scratch = m_scratch.path() / fmt::format("ask-{}", number);
      if (auto made = util::make_folders(scratch); !made) return failed(made.error());
      asks.push_back(one_ask(installation, cache, scratch, progress));
      if (asks.back().build) asks.back().build->extension_path.clear();
      asks.back().not_measured.try_emplace("/build/extension_path", "removed when the ask ended");
      if (!judge::is_right(asks.back().outcome)) break;
      m_judge.trace_kernels = false;  // the first has shown them
    }
    auto verdict = judge::combine_grade(asks);
    if (auto const own = util::sha256_of_file(util::own_executable())) {
      verdict.environment["cuda-agent.sha256"] = *own;
    }
    return verdict;
  }

  /// What has to be clear before anything is started.
  Result<void> prepare_grade() {
    if (m_options.task.empty() && m_options.task_sha256.empty()) {
      return fail(Outcome::usage_error, "a grade needs a task that the candidate's author cannot have changed",
                  {"--task FOLDER takes model.py from there; --task-sha256 HASH says which model.py it must be"});
    }
    auto key = util::SigningKey::open_or_make(signing_key_file());
    if (!key) return fail(key.error());
    m_key = std::move(*key);
    return {};
  }

  Result<void> check_task() {
    auto const& wanted = m_options.task_sha256;
    m_judge.task_pinned = !m_options.task.empty() || !wanted.empty();
    if (wanted.empty() || m_snapshot->task_sha256 == wanted) return {};
    return fail(Outcome::policy_violation,
                fmt::format("model.py is not the task that was asked for: its SHA-256 is {}, --task-sha256 says {}",
                            m_snapshot->task_sha256.empty() ? "none" : m_snapshot->task_sha256, wanted),
                {"put the task's own model.py back, or take it from elsewhere: --task FOLDER"});
  }

  /// Workspace, lock, scratch folder, snapshot: in this order, each resting on the one before.
  Result<void> prepare(util::Progress& progress) {
    if (m_options.grade) {
      if (auto ready = prepare_grade(); !ready) return ready;
    }
    auto workspace = workspace::open_workspace(m_options.workspace);
    if (!workspace) return fail(workspace.error());
    m_workspace = std::move(*workspace);

    judge::Stopwatch const watch(m_timeline, "snapshot");
    double const start = util::steady_seconds();
    auto const holder = fmt::format("cuda-agent {} {}", m_options.command, m_workspace->root.string());
    std::string waiting_for;
    auto const told = [&](const std::string& other) {
      waiting_for = fmt::format("waiting for the workspace, which is held by {}", other);
      if (m_resident == nullptr) progress.note(waiting_for);
    };
    // A session has others to answer meanwhile.
    auto const limit = m_resident != nullptr ? util::Deadline::after(std::chrono::seconds(0)) : m_deadline;
    auto lock = workspace::Lock::acquire(*m_workspace, holder, limit.earlier(m_deadline), told);
    m_waited = util::steady_seconds() - start;
    if (!lock && m_resident != nullptr && lock.error().outcome == Outcome::timeout && !m_deadline.expired()) {
      throw session::HeldElsewhere{waiting_for};
    }
    if (!lock) return fail(lock.error());
    m_lock = std::move(*lock);

    auto const parent = workspace::clean_scratch_parent(*m_workspace);
    if (!parent) return fail(parent.error());
    auto scratch = util::TemporaryFolder::make(*parent, fmt::format("ask-{}-", ::getpid()));
    if (!scratch) return fail(scratch.error());
    m_scratch = std::move(*scratch);

    auto const compile_only = m_options.judge.stage == judge::Stage::compile;
    auto snapshot =
        workspace::take_snapshot(*m_workspace, m_scratch.path() / "snapshot",
                                 {.model = !compile_only, .model_new = !compile_only, .task = m_options.task});
    if (!snapshot) return fail(snapshot.error());
    m_snapshot = std::move(*snapshot);
    return check_task();
  }

  Verdict failed(const Error& error) const {
    Verdict verdict;
    if (m_workspace) verdict.workspace = m_workspace->root.string();
    verdict.contract = m_options.judge.contract == judge::Contract::kernelbench ? "kernelbench" : "cuda-agent";
    set_failure(verdict, util::interrupted() ? util::interrupted_error() : error);
    judge::RewardFacts facts;
    facts.outcome = verdict.outcome;
    facts.fault = verdict.fault;
    facts.seeds_replayed = m_options.judge.seed.has_value();
    facts.policy_off = !m_options.judge.policy;
    facts.layer_off = m_options.judge.without != judge::Layer::none;
    verdict.reward = judge::provisional_reward(facts);
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
  Resident* m_resident;
  judge::Options m_judge = m_options.judge;
  util::Deadline m_deadline;
  std::optional<util::SigningKey> m_key;  ///< of a grade
  std::optional<workspace::Workspace> m_workspace;
  std::optional<workspace::Lock> m_lock;
  util::TemporaryFolder m_scratch;
  std::optional<workspace::Snapshot> m_snapshot;
  double m_waited = 0;
  double m_began = util::steady_seconds();
  Timeline m_timeline;  ///< of what comes before the judge
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

std::string rendered(const Verdict& verdict, const std::string& json, const Ask& ask, const AskOptions& options,
                     const Console& console) {
  if (options.output.json) return json + "\n";
  report::TextStyle style;
  style.colour = console.colour;
  style.verbose = options.output.verbose;
  style.timings = options.output.timings;
  style.source_line = [&](const std::string& file, int line) { return ask.source_line(file, line); };
  return report::render_text(verdict, style);
}

}  // namespace

Verdict answer_quietly(const AskOptions& options, Console& console) {
  auto const progress = make_progress(console, verbosity(options.output));
  return Ask(options).answer(*progress);
}

namespace {

/// Prints and records. Returns the exit code.
int finish(const Ask& ask, Verdict verdict, const AskOptions& options, Console& console) {
  if (auto const next = next_step(verdict, options);
      verdict.outcome == Outcome::pass && verdict.hints.empty() && !next.empty()) {
    verdict.hints.push_back(next);
  }
  auto const json = ask.in_json(verdict);
  auto const kept = ask.keep_grade(verdict, json);
  if (!kept) {
    console.err << "cuda-agent: warning: the grade is not kept in a file: " << kept.error().message << '\n';
  } else if (*kept) {
    // Not in the JSON: that is signed, and what is in the file is what was printed.
    verdict.hints.push_back(
        fmt::format("cuda-agent check-verdict {} verifies the signature and the figures anywhere", (*kept)->string()));
  }
  if (auto const& trace = options.output.timings_trace; !trace.empty()) {
    if (auto const written = util::write_file(trace, report::render_chrome_trace(verdict)); !written) {
      console.err << "cuda-agent: warning: --timings-trace: " << written.error().message << '\n';
    }
  }
  // What nobody wants any more is not kept; a session's client, which was interrupted, records that itself.
  bool const cancelled = util::interrupted() && !util::signalled();
  if (auto const recorded = cancelled ? Result<void>() : ask.record(json); !recorded) {
    console.err << "cuda-agent: warning: the verdict is not in the history: " << recorded.error().message << '\n';
  }
  auto const printed = print_result(console, rendered(verdict, json, ask, options, console));
  auto const code = exit_code(verdict.outcome);
  return code != 0 ? code : printed;
}

}  // namespace

int answer_ask(const AskOptions& options, Console& console) {
  Ask ask(options, console.resident);
  auto progress = make_progress(console, verbosity(options.output));
  auto verdict = ask.answer(*progress);
  progress.reset();  // clears its line before the report
  return finish(ask, std::move(verdict), options, console);
}

Front answer_front(const AskOptions& options, Console& console, std::unique_ptr<util::Progress>& progress) {
  AskOptions front = options;
  front.judge.front_only = true;
  Ask ask(front);
  auto verdict = ask.answer(*progress);
  if (verdict.outcome != Outcome::pass) {
    progress.reset();  // clears its line before the report
    return {finish(ask, std::move(verdict), options, console), {}};
  }
  nlohmann::json objects = nlohmann::json::object();
  if (verdict.build) {
    for (BuiltObject const& one : verdict.build->objects) {
      if (!one.cached) objects[one.source] = one.seconds;
    }
  }
  nlohmann::json timeline = nlohmann::json::array();
  for (TimelineSpan const& one : verdict.timeline) {
    timeline.push_back({{"what", one.what},
                        {"lane", one.lane == "ask" ? "client" : one.lane},
                        {"start", one.start},
                        {"seconds", one.seconds}});
  }
  return {std::nullopt,
          {{"build", verdict.timings["build"]}, {"objects", std::move(objects)}, {"timeline", std::move(timeline)}}};
}

int expect_ask(const AskOptions& options, const Resident& resident) {
  auto const installation = find_installation();
  auto const workspace = workspace::open_workspace(options.workspace);
  if (!installation || !workspace) return exit_code(Outcome::environment_error);
  auto const cache = build::open_cache(workspace->state / "cache");
  if (!cache) return exit_code(cache.error().outcome);
  auto const task =
      util::sha256_of_file((options.task.empty() ? workspace->root : fs::path(options.task)) / "model.py");
  util::SilentProgress silent;
  auto const announced = judge::announce(task.value_or(""), workspace->root, options.judge, installation->judge, *cache,
                                         silent, util::Deadline::after(std::chrono::seconds(60)), resident.supply);
  return exit_code(announced ? Outcome::pass : announced.error().outcome);
}

int run_ask(const AskOptions& options, Console& console) {
  if (console.resident != nullptr) {
    return console.resident->expecting ? expect_ask(options, *console.resident) : answer_ask(options, console);
  }
  if (auto const code = ask_session(options, console)) return *code;
  return answer_ask(options, console);
}

}  // namespace cuda_agent::cli
