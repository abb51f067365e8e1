#include "selftest/run.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <poll.h>
#include <spdlog/fmt/fmt.h>

#include "selftest/ask.hpp"
#include "selftest/expectation.hpp"
#include "selftest/gain.hpp"
#include "selftest/traces.hpp"
#include "util/interrupt.hpp"

namespace cuda_agent::selftest {

namespace {

/// What is to be asked, or is.
struct Item {
  std::size_t index = 0;  // of its case
  Part part{};

  bool operator<(const Item& other) const {
    return std::tie(index, part.kind, part.layer) < std::tie(other.index, other.part.kind, other.part.layer);
  }
};

struct Job {
  Item item;
  Ask ask;
};

std::string why_left_out(const Case& one, bool gpu) {
  if (one.needs_cuda && !gpu) return "it needs a GPU";
  return one.known_gap() ? one.gap : std::string();
}

/// The case as it is asked about: what the policy says is only read from a verdict.
Case asked(const Case& one, const Part& part) {
  auto result = one;
  if (part.kind != Part::Kind::caught) result.text = false;
  return result;
}

/// What is wrong with a verdict.
std::vector<std::string> wrong_with(const Case& one, const Part& part, const Answer& answer) {
  return part.kind == Part::Kind::caught ? unexpected(one, answer) : disproved(one, part, answer);
}

/// A case may expect such an answer; a proof never does.
bool was_environment(const Part& part, const Report& report) {
  if (report.answer.exit_code != exit_code(Outcome::environment_error)) return false;
  return part.kind != Part::Kind::caught || !report.problems.empty();
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
      if (result.left_out.empty()) m_waiting.push_back({m_results.size(), {}});
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
  Result<void> begin(const Item& item) {
    auto const& one = m_results[item.index].one;
    if (item.part.kind == Part::Kind::caught) m_watcher.begins(one);
    auto ask = Ask::begin(asked(one, item.part), switched_off(one, item.part), m_options);
    if (!ask) return fail(ask.error());
    m_jobs.push_back({item, std::move(*ask)});
    return {};
  }

  void wait_for_news() const {
    std::vector<pollfd> news{{util::interrupt_fd(), POLLIN, 0}};
    auto patience = std::chrono::milliseconds(1000);
    for (auto const& job : m_jobs) {
      news.push_back({job.ask.output_fd(), POLLIN, 0});
      news.push_back({job.ask.exit_fd(), POLLIN, 0});
      // A kernel without pidfds tells nobody of an end.
      if (job.ask.exit_fd() < 0) patience = std::chrono::milliseconds(20);
    }
    ::poll(news.data(), news.size(), static_cast<int>(patience.count()));
  }

  Result<void> look_at_jobs() {
    for (auto job = m_jobs.begin(); job != m_jobs.end();) {
      auto report = job->ask.look(m_litter);
      if (!report) {
        ++job;
        continue;
      }
      if (util::interrupted()) return fail(util::interrupted_error());
      if (auto noted = note(*job, std::move(*report)); !noted) return noted;
      job = m_jobs.erase(job);
    }
    return {};
  }

  /// Notes what an ask came to, unless it is to be made again.
  Result<void> note(Job& job, Report report) {
    m_litter = litter();
    auto& result = m_results[job.item.index];
    if (report.answered) {
      auto const wrong = wrong_with(result.one, job.item.part, report.answer);
      report.problems.insert(report.problems.begin(), wrong.begin(), wrong.end());
    }
    // A machine that is short of something may be so for a moment.
    auto const unjudged = was_environment(job.item.part, report);
    if ((unjudged && m_again.insert(job.item).second) || gain_is_open(job.item, report)) {
      m_waiting.push_front(job.item);
      return {};
    }
    if (unjudged && !m_any_judged) {
      return fail(Outcome::environment_error, report.answer.message, report.answer.hints);
    }
    m_any_judged = m_any_judged || !unjudged;
    if (job.item.part.kind == Part::Kind::caught) {
      note_caught(job, report);
    } else {
      note_proof(job.item.part, report, result.proof);
    }
    if (unjudged) {
      result.state = State::not_judged;
      result.answer = report.answer;
    }
    if (auto const next = next_part(job.item)) {
      m_waiting.push_front({job.item.index, *next});
    } else {
      conclude(result);
    }
    return {};
  }

  void note_caught(Job& job, const Report& report) {
    auto& result = m_results[job.item.index];
    result.answer = report.answer;
    result.problems = report.problems;
    result.seconds = report.seconds;
    result.state = report.problems.empty() ? State::as_expected : State::wrong;
    if (m_options.keep) result.kept = job.ask.keep();
  }

  static void note_proof(const Part& part, const Report& report, Proof& proof) {
    if (part.kind == Part::Kind::through) proof.through = report.answer;
    if (part.layer == "policy") proof.policy = report.answer;
    proof.problems.insert(proof.problems.end(), report.problems.begin(), report.problems.end());
    proof.seconds += report.seconds;
  }

  /// What is asked of a case after this; nothing of one that is not as expected.
  std::optional<Part> next_part(const Item& item) const {
    auto const& result = m_results[item.index];
    if (!m_options.prove_layers || result.state != State::as_expected) return std::nullopt;
    auto const parts = parts_of_proof(result.one);
    auto const done = std::find(parts.begin(), parts.end(), item.part);
    auto const next = done == parts.end() ? parts.begin() : std::next(done);
    return next == parts.end() ? std::nullopt : std::optional(*next);
  }

  void conclude(CaseResult& result) const {
    if (m_options.prove_layers && result.one.kind == Kind::exploit && result.state == State::as_expected) {
      result.proof.state = !result.proof.problems.empty()       ? Proof::State::not_proven
                           : not_switchable(result.one).empty() ? Proof::State::proven
                                                                : Proof::State::not_switchable;
    }
    m_watcher.ends(result);
  }

  /// Of an exploit that is bound and not refused: whether one more ask is needed. If not, says what is wrong.
  bool gain_is_open(const Item& item, Report& report) {
    auto const limit = m_results[item.index].one.expect.most_speedup;
    if (!limit || item.part.layer == "policy" || !report.problems.empty()) return false;
    if (report.answer.outcome != to_string(Outcome::pass)) return false;
    auto const bound = item.part.kind == Part::Kind::through ? Bound::more_than : Bound::at_most;
    auto& gain = m_gains.try_emplace(item, bound, *limit).first->second;
    gain.add(report.answer);
    if (gain.is_open()) return true;
    if (item.part.kind == Part::Kind::through) m_results[item.index].proof.gain = gain.median();
    if (auto const problem = gain.problem()) report.problems.push_back(*problem);
    return false;
  }

  const Options& m_options;
  const Watcher& m_watcher;
  std::vector<CaseResult> m_results;
  std::deque<Item> m_waiting;
  std::vector<Job> m_jobs;
  std::map<Item, Gain> m_gains;
  std::set<Item> m_again;          // tried a second time
  std::set<std::string> m_litter;  // that was there before
  bool m_any_judged = false;
};

}  // namespace

Result<std::vector<CaseResult>> run_cases(const std::vector<Case>& cases, const Options& options,
                                          const Watcher& watcher) {
  return Run(cases, options, watcher).to_the_end();
}

}  // namespace cuda_agent::selftest
