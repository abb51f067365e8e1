#include "selftest/ask.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <system_error>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "exec/descendants.hpp"
#include "selftest/command.hpp"
#include "selftest/traces.hpp"
#include "selftest/workspace.hpp"
#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace fs = std::filesystem;

namespace {

// What ends with its judge takes a moment.
constexpr std::chrono::seconds grace{5};
constexpr std::size_t longest_output = std::size_t{64} << 20;

}  // namespace

Result<Ask> Ask::begin(const Case& one, const std::vector<std::string>& off, const Options& options) {
  std::error_code error;
  auto folder = util::TemporaryFolder::make(fs::temp_directory_path(error), "cuda-agent-selftest-");
  if (!folder) return fail(folder.error());
  Ask ask(one, std::move(*folder));
  if (auto made = make_workspace(one, options.tasks, ask.workspace()); !made) return fail(made.error());
  ask.m_files = listing(ask.workspace());
  exec::Command command;
  command.argv = judge_command(one, off, options.binary, ask.workspace(), options.python);
  command.env = judge_environment();
  command.capture_head = longest_output;
  auto child = exec::spawn(command);
  if (!child) return fail(child.error());
  ask.m_child = std::move(*child);
  return ask;
}

std::optional<Report> Ask::look(const std::set<std::string>& litter_before) {
  m_child->drain();
  Report report;
  if (exec::wait_for_end(m_child->pid(), util::Deadline::after(std::chrono::seconds(0)))) {
    report = ended();
  } else if (m_deadline.expired()) {
    m_child->kill();
    report.problems.push_back(fmt::format("the judge did not answer within {} s", longest.count()));
  } else {
    return std::nullopt;
  }
  report.seconds = std::chrono::duration<double>(util::Clock::now() - m_start).count();
  look_for_traces(litter_before, report);
  return report;
}

Report Ask::ended() {
  Report report;
  // Before poll(), which ends all that it left.
  auto const left = left_running(util::Deadline::after(grace));
  auto const status = m_child->poll().value_or(exec::ExitStatus{});
  if (status.signal != 0) {
    report.problems.push_back("the judge was " + status.describe());
  } else if (auto const answer = read_answer(m_case, status.code, m_child->output().text()); answer) {
    report.answer = *answer;
    report.answered = true;
  } else {
    report.answer.exit_code = status.code;
    report.answer.message = answer.error().message;
    report.problems.push_back(answer.error().message);
  }
  if (!left.empty()) report.problems.push_back("left running: " + util::join(left, ", "));
  return report;
}

void Ask::look_for_traces(const std::set<std::string>& litter_before, Report& report) const {
  if (!lock_is_free(workspace())) report.problems.emplace_back("the workspace is still locked");
  if (auto const changed = changed_paths(m_files, listing(workspace())); !changed.empty()) {
    report.problems.push_back("changed in the workspace: " + util::join(changed, ", "));
  }
  std::vector<std::string> more;
  auto const now = litter();
  std::set_difference(now.begin(), now.end(), litter_before.begin(), litter_before.end(), std::back_inserter(more));
  if (!more.empty()) report.problems.push_back("left outside of the sandbox: " + util::join(more, ", "));
}

}  // namespace cuda_agent::selftest
