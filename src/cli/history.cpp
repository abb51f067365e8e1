#include "cli/history.hpp"

#include "report/json.hpp"
#include "util/files.hpp"

namespace cuda_agent::cli {

Result<void> record(const workspace::Workspace& workspace, const Verdict& verdict) {
  auto const text = report::render_json(verdict);
  auto const appended = util::append_line(workspace.state / "history.jsonl", text);
  auto const written = util::write_file(workspace.state / "last-verdict.json", text + "\n");
  return appended ? written : appended;
}

}  // namespace cuda_agent::cli
