#include "build/jobs.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

#include <poll.h>
#include <spdlog/fmt/fmt.h>

#include "util/interrupt.hpp"

namespace cuda_agent::build {

namespace {

using util::Clock;

constexpr std::chrono::milliseconds poll_step{5};
constexpr std::chrono::milliseconds grace_after_failure{500};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void wait_a_moment() {
  pollfd interrupt{util::interrupt_fd(), POLLIN, 0};  // a negative descriptor is ignored by poll
  ::poll(&interrupt, 1, static_cast<int>(poll_step.count()));
}

class JobRunner {
 public:
  JobRunner(const std::vector<Job>& jobs, int parallel, util::Progress& progress, util::Deadline deadline)
      : m_jobs(jobs),
        m_outcomes(jobs.size()),
        m_ended(jobs.size(), false),
        m_started(jobs.size(), false),
        m_parallel(std::max(1, parallel)),
        m_progress(progress),
        m_deadline(deadline) {}

  std::vector<JobOutcome> run() {
    while (!finished()) {
      if (util::interrupted()) {
        stop_all(JobOutcome::State::interrupted);
        break;
      }
      if (m_stop_at && (Clock::now() >= *m_stop_at || only_optional_jobs_run())) {
        stop_all(JobOutcome::State::not_run);
        break;
      }
      start_ready_jobs();
      look_at_running_jobs();
      if (!m_running.empty()) wait_a_moment();
    }
    return std::move(m_outcomes);
  }

 private:
  struct Running {
    std::size_t index;
    std::unique_ptr<Work> work;
    Clock::time_point start;
    util::Deadline deadline;
  };

  bool finished() const {
    if (!m_running.empty()) return false;
    return m_stop_at || std::all_of(m_started.begin(), m_started.end(), [](bool started) { return started; });
  }

  bool only_optional_jobs_run() const {
    return std::all_of(m_running.begin(), m_running.end(),
                       [this](const Running& running) { return m_jobs[running.index].optional; });
  }

  bool is_ready(std::size_t index) const {
    auto const& after = m_jobs[index].after;
    return !m_started[index] && (!after || m_ended[*after]);
  }

  void start_ready_jobs() {
    for (std::size_t i = 0; i < m_jobs.size() && !m_stop_at; ++i) {
      if (m_running.size() >= static_cast<std::size_t>(m_parallel)) return;
      if (is_ready(i)) start(i);
    }
  }

  void start(std::size_t index) {
    m_started[index] = true;
    ++m_count;
    std::string const count = m_jobs.size() > 1 ? fmt::format(" {} of {}", m_count, m_jobs.size()) : std::string();
    m_progress.step(fmt::format("{}{}: {}", m_jobs[index].verb, count, m_jobs[index].label));
    auto const& job = m_jobs[index];
    auto work = job.start ? job.start() : start_process(job.command());
    if (!work) {
      m_outcomes[index].error = work.error();
      end(index, JobOutcome::State::not_started);
      return;
    }
    auto const limit = util::Deadline::after(std::chrono::duration<double>(job.timeout));
    m_running.push_back({index, std::move(*work), Clock::now(), limit.earlier(m_deadline)});
  }

  void look_at_running_jobs() {
    for (auto& running : m_running) look_at(running);
    std::erase_if(m_running, [](const Running& running) { return running.work == nullptr; });
  }

  void look_at(Running& running) {
    auto const ended = running.work->poll();
    if (!ended && !running.deadline.expired()) return;
    auto& outcome = m_outcomes[running.index];
    auto state = JobOutcome::State::timed_out;
    if (!ended) {
      running.work->kill();
    } else if (*ended) {
      outcome.status = **ended;
      state = JobOutcome::State::finished;
    } else {
      outcome.error = ended->error();
      state = JobOutcome::State::not_started;
    }
    take_output(running);
    end(running.index, state);
  }

  void take_output(Running& running) {
    auto& outcome = m_outcomes[running.index];
    outcome.output = running.work->output();
    outcome.start = std::chrono::duration<double>(running.start.time_since_epoch()).count();
    outcome.seconds = seconds_since(running.start);
    running.work.reset();
  }

  void end(std::size_t index, JobOutcome::State state) {
    m_outcomes[index].state = state;
    m_ended[index] = true;
    if (m_outcomes[index].ok() && m_jobs[index].succeeded) m_jobs[index].succeeded();
    if (!m_outcomes[index].ok() && !m_jobs[index].optional && !m_stop_at)
      m_stop_at = Clock::now() + grace_after_failure;
  }

  void stop_all(JobOutcome::State state) {
    for (auto& running : m_running) {
      running.work->kill();
      take_output(running);
      m_outcomes[running.index].state = state;
    }
    m_running.clear();
    if (state != JobOutcome::State::interrupted) return;
    for (std::size_t i = 0; i < m_jobs.size(); ++i) {
      if (!m_started[i]) m_outcomes[i].state = state;
    }
  }

  const std::vector<Job>& m_jobs;
  std::vector<JobOutcome> m_outcomes;
  std::vector<bool> m_ended;
  std::vector<bool> m_started;
  std::vector<Running> m_running;
  int m_parallel;
  int m_count = 0;
  util::Progress& m_progress;
  util::Deadline m_deadline;
  std::optional<Clock::time_point> m_stop_at;
};

}  // namespace

std::vector<JobOutcome> run_jobs(const std::vector<Job>& jobs, int parallel, util::Progress& progress,
                                 util::Deadline deadline) {
  return JobRunner(jobs, parallel, progress, deadline).run();
}

}  // namespace cuda_agent::build
