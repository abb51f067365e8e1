// One ask of the judge about a case, in a workspace of its own, and a look at what it leaves behind.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cuda_agent/error.hpp"
#include "exec/child.hpp"
#include "selftest/answer.hpp"
#include "selftest/case.hpp"
#include "selftest/options.hpp"
#include "util/deadline.hpp"
#include "util/files.hpp"

namespace cuda_agent::selftest {

/// What an ask came to.
struct Report {
  Answer answer;  ///< without an outcome when there was no verdict
  bool answered = false;
  std::vector<std::string> problems;  ///< why there was none, and what was left behind
  double seconds = 0;
};

class Ask {
 public:
  /// `off`: the judge's arguments that switch layers off. Errors: environment_error.
  static Result<Ask> begin(const Case& one, const std::vector<std::string>& off, const Options& options);

  /// To be polled: what it prints, and its end (negative where the kernel tells nobody of ends).
  int output_fd() const { return m_child->output_fd(); }
  int exit_fd() const { return m_child->exit_fd(); }

  /// Nothing while it goes on. Must be called by the thread that began it, and no child may be reaped in between by
  /// others: reaping sweeps (exec/child.hpp). `litter_before`: what litter() found before.
  std::optional<Report> look(const std::set<std::string>& litter_before);

  /// Keeps its workspace, which goes with the Ask otherwise.
  std::filesystem::path keep() { return m_folder.release() / workspace_name; }

 private:
  static constexpr const char* workspace_name = "workspace";
  // Above the judge's own limit, which is the one that should end it.
  static constexpr std::chrono::seconds longest{660};

  Ask(Case one, util::TemporaryFolder folder) : m_case(std::move(one)), m_folder(std::move(folder)) {}
  std::filesystem::path workspace() const { return m_folder.path() / workspace_name; }
  Report ended();
  void look_for_traces(const std::set<std::string>& litter_before, Report& report) const;

  Case m_case;
  util::TemporaryFolder m_folder;
  std::map<std::string, std::string> m_files;  // of the workspace, before
  util::Clock::time_point m_start = util::Clock::now();
  util::Deadline m_deadline = util::Deadline::after(longest);
  std::unique_ptr<exec::Child> m_child;
};

}  // namespace cuda_agent::selftest
