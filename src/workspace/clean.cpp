#include <string>
#include <system_error>

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>

#include "util/files.hpp"
#include "util/text.hpp"
#include "workspace/workspace.hpp"

namespace cuda_agent::workspace {

namespace fs = std::filesystem;

namespace {

/// Folders of a snapshot are read-only, and their entries can only be removed once they are not.
void make_folders_writable(const fs::path& folder) {
  ::chmod(folder.c_str(), 0700);
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (fs::is_directory(entry->symlink_status(ignored))) make_folders_writable(entry->path());
  }
}

}  // namespace

Result<void> remove_tree(const fs::path& path) {
  std::error_code error;
  auto const status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return {};
  if (fs::is_directory(status)) make_folders_writable(path);
  fs::remove_all(path, error);
  if (error) {
    return fail(Outcome::environment_error,
                fmt::format("cannot remove {}: {}", util::escape_untrusted(path.string()), error.message()),
                {"remove it by hand, as the user that owns it"});
  }
  return {};
}

Result<fs::path> clean_scratch_parent(const Workspace& workspace) {
  auto folder = workspace.state / "tmp";
  if (auto removed = remove_tree(folder); !removed) return fail(removed.error());
  if (auto made = util::make_folders(folder); !made) return fail(made.error());
  return folder;
}

Result<std::vector<std::string>> clean(const Workspace& workspace, CleanOptions options) {
  std::vector<std::string> names{"tmp", "build", "cache"};
  if (options.history) names.insert(names.end(), {"history.jsonl", "last-verdict.json"});
  std::vector<std::string> removed;
  for (auto const& name : names) {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(workspace.state / name, error))) continue;
    if (auto gone = remove_tree(workspace.state / name); !gone) return fail(gone.error());
    removed.push_back(".cuda-agent/" + name);
  }
  return removed;
}

}  // namespace cuda_agent::workspace
