#include "selftest/run.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include <poll.h>
#include <spdlog/fmt/fmt.h>

#include "exec/child.hpp"
#include "exec/descendants.hpp"
#include "selftest/command.hpp"
#include "selftest/expectation.hpp"
#include "selftest/gain.hpp"
#include "selftest/traces.hpp"
#include "selftest/workspace.hpp"
#include "util/deadline.hpp"
#include "util/files.hpp"
#include "util/interrupt.hpp"
#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace fs = std::filesystem;

namespace {

// Above the judge's own limit, which is the one that should end it.
constexpr std::chrono::seconds longest_ask{660};
// What ends with its judge takes a moment.
constexpr std::chrono::seconds grace{5};
constexpr std::size_t longest_output = std::size_t{64} << 20;

/// A case that is being judged.
struct Job {
  std::size_t index = 0;  // of its case
  util::TemporaryFolder folder;
  std::map<std::string, std::string> files;  // of the workspace, before
  util::Clock::time_point start = util::Clock::now();
  util::Deadline deadline = util::Deadline::after(longest_ask);
  std::unique_ptr<exec::Child> child;

  fs::path workspace() const { return folder.path() / "workspace"; }
};

bool was_environment(const CaseResult& result) {
  return result.answer.exit_code == exit_code(Outcome::environment_error) && !result.problems.empty();
}

std::string why_left_out(const Case& one, bool gpu) {
  if (one.needs_cuda && !gpu) return "it needs a GPU";
  return one.known_gap() ? one.gap : std::string();
}

/// One thread does everything: what a judge leaves running can be told from what another one runs only while no child
/// is reaped in between, since reaping sweeps (exec/child.hpp).
class Run {
 public:
  Run(const std::vector<Case>& cases, const Options& options, const Watcher& watcher)
      : m_options(options), m_watcher(watcher), m_litter(litter()) {
    for (auto const& one : cases) {
      CaseResult result;
      result.one = one;
      result.left_out = why_left_out(one, options.gpu);
      if (result.left_out.empty()) m_waiting.push_back(m_results.size());
      m_results.push_back(std::move(result));
    }
  }

  Result<std::vector<CaseResult>> to_the_end() {
    while (!m_waiting.empty() || !m_jobs.empty()) {
      if (util::interrupted()) return fail(util::interrupted_error());
      while (!m_waiting.empty() && m_jobs.size() < static_cast<std::size_t>(m_options.jobs)) {
        if (auto begun = begin(m_waiting.front()); !begun) return fail(begun.error());
        m_waiting.pop_front();
      }
      wait_for_news();
      if (auto seen = look_at_jobs(); !seen) return fail(seen.error());
    }
    return std::move(m_results);
  }

 private:
  Result<void> begin(std::size_t index) {
    auto const& one = m_results[index].one;
    m_watcher.begins(one);
    Job job;
    job.index = index;
    std::error_code error;
    auto folder = util::TemporaryFolder::make(fs::temp_directory_path(error), "cuda-agent-selftest-");
    if (!folder) return fail(folder.error());
    job.folder = std::move(*folder);
    if (auto made = make_workspace(one, m_options.tasks, job.workspace()); !made) return made;
    job.files = listing(job.workspace());
    exec::Command command;
    command.argv = judge_command(one, m_options.binary, job.workspace(), m_options.python);
    command.env = judge_environment();
    command.capture_head = longest_output;
    auto child = exec::spawn(command);
    if (!child) return fail(child.error());
    job.child = std::move(*child);
    m_jobs.push_back(std::move(job));
    return {};
  }

  void wait_for_news() const {
    std::vector<pollfd> news{{util::interrupt_fd(), POLLIN, 0}};
    auto patience = std::chrono::milliseconds(1000);
    for (auto const& job : m_jobs) {
      news.push_back({job.child->output_fd(), POLLIN, 0});
      news.push_back({job.child->exit_fd(), POLLIN, 0});
      // A kernel without pidfds tells nobody of an end.
      if (job.child->exit_fd() < 0) patience = std::chrono::milliseconds(20);
    }
    ::poll(news.data(), news.size(), static_cast<int>(patience.count()));
  }

  Result<void> look_at_jobs() {
    for (auto job = m_jobs.begin(); job != m_jobs.end();) {
      job->child->drain();
      auto const ended = exec::wait_for_end(job->child->pid(), util::Deadline::after(std::chrono::seconds(0)));
      if (!ended && !job->deadline.expired()) {
        ++job;
        continue;
      }
      auto result = ended ? judged(*job) : hanging(*job);
      if (util::interrupted()) return fail(util::interrupted_error());
      if (auto noted = note(*job, std::move(result)); !noted) return noted;
      job = m_jobs.erase(job);
    }
    return {};
  }

  CaseResult hanging(Job& job) const {
    CaseResult result = m_results[job.index];
    job.child->kill();
    result.problems.push_back(fmt::format("the judge did not answer within {} s", longest_ask.count()));
    return finished(job, std::move(result));
  }

  CaseResult judged(Job& job) {
    CaseResult result = m_results[job.index];
    // Before poll(), which ends all that it left.
    auto const left = left_running(util::Deadline::after(grace));
    auto const status = job.child->poll().value_or(exec::ExitStatus{});
    if (status.signal != 0) {
      result.problems.push_back("the judge was " + status.describe());
    } else if (auto const answer = read_answer(result.one, status.code, job.child->output().text()); answer) {
      result.answer = *answer;
      result.problems = unexpected(result.one, result.answer);
    } else {
      result.answer.exit_code = status.code;
      result.answer.message = answer.error().message;
      result.problems.push_back(answer.error().message);
    }
    if (!left.empty()) result.problems.push_back("left running: " + util::join(left, ", "));
    return finished(job, std::move(result));
  }

  /// What does not depend on how it ended.
  CaseResult finished(Job& job, CaseResult result) const {
    result.seconds = std::chrono::duration<double>(util::Clock::now() - job.start).count();
    if (!lock_is_free(job.workspace())) result.problems.emplace_back("the workspace is still locked");
    if (auto const changed = changed_paths(job.files, listing(job.workspace())); !changed.empty()) {
      result.problems.push_back("changed in the workspace: " + util::join(changed, ", "));
    }
    std::vector<std::string> more;
    auto const now = litter();
    std::set_difference(now.begin(), now.end(), m_litter.begin(), m_litter.end(), std::back_inserter(more));
    if (!more.empty()) result.problems.push_back("left outside of the sandbox: " + util::join(more, ", "));
    return result;
  }

  /// The result of a case, unless it is to be asked again.
  Result<void> note(Job& job, CaseResult result) {
    m_litter = litter();
    // A machine that is short of something may be so for a moment.
    auto const unjudged = was_environment(result);
    if ((unjudged && m_again.insert(job.index).second) || gain_is_open(job.index, result)) {
      m_waiting.push_back(job.index);
      return {};
    }
    if (unjudged && !m_any_judged) {
      return fail(Outcome::environment_error, result.answer.message, result.answer.hints);
    }
    m_any_judged = m_any_judged || !unjudged;
    result.state = unjudged ? State::not_judged : result.problems.empty() ? State::as_expected : State::wrong;
    if (m_options.keep) result.kept = job.folder.release() / "workspace";
    m_watcher.ends(result);
    m_results[job.index] = std::move(result);
    return {};
  }

  /// Of an exploit that is bound and not refused: whether one more ask is needed. If not, says what is wrong.
  bool gain_is_open(std::size_t index, CaseResult& result) {
    auto const most = result.one.expect.most_speedup;
    if (!most || !result.problems.empty() || result.answer.outcome != to_string(Outcome::pass)) return false;
    auto& gain = m_gains.try_emplace(index, *most).first->second;
    gain.add(result.answer);
    if (gain.is_open()) return true;
    if (auto const problem = gain.problem()) result.problems.push_back(*problem);
    return false;
  }

  const Options& m_options;
  const Watcher& m_watcher;
  std::vector<CaseResult> m_results;
  std::deque<std::size_t> m_waiting;  // indices of results
  std::vector<Job> m_jobs;
  std::map<std::size_t, Gain> m_gains;
  std::set<std::size_t> m_again;   // tried a second time
  std::set<std::string> m_litter;  // that was there before
  bool m_any_judged = false;
};

}  // namespace

Result<std::vector<CaseResult>> run_cases(const std::vector<Case>& cases, const Options& options,
                                          const Watcher& watcher) {
  return Run(cases, options, watcher).to_the_end();
}

}  // namespace cuda_agent::selftest
