#include <spdlog/fmt/fmt.h>

#include "util/text.hpp"
#include "workspace/workspace.hpp"

namespace cuda_agent::workspace {

Result<Lock> Lock::acquire(const Workspace& workspace, std::string_view command, util::Deadline deadline,
                           const std::function<void(const std::string& holder)>& waiting) {
  std::string holder;
  auto const remember = [&](const std::string& text) {
    holder = util::escape_untrusted(text, 512);
    if (waiting) waiting(holder);
  };
  auto lock = util::FileLock::acquire(workspace.state / "lock", command, deadline, remember);
  if (lock) return Lock(std::move(*lock));
  auto error = std::move(lock.error());
  if (error.outcome == Outcome::timeout) {
    error.message = fmt::format("the time limit passed while waiting for the workspace; it is held by {}",
                                holder.empty() ? "another process" : holder);
    error.hints = {"wait until that command has ended, or end it; a longer --timeout waits longer"};
    error.fault = Fault::environment;
  }
  return fail(std::move(error));
}

}  // namespace cuda_agent::workspace
