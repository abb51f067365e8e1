#include "cli/history.hpp"

#include "util/files.hpp"

namespace cuda_agent::cli {

Result<void> record(const workspace::Workspace& workspace, const std::string& json) {
  auto const appended = util::append_line(workspace.state / "history.jsonl", json);
  auto const written = util::write_file(workspace.state / "last-verdict.json", json + "\n");
  return appended ? written : appended;
}

}  // namespace cuda_agent::cli
