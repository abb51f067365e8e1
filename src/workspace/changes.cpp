#include "workspace/changes.hpp"

#include <algorithm>
#include <system_error>

#include <sys/stat.h>

#include "workspace/workspace.hpp"

namespace cuda_agent::workspace {
namespace {

namespace fs = std::filesystem;

void look_at(FileStates& states, const fs::path& file, const std::string& name) {
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0) return;
  constexpr std::int64_t second = 1'000'000'000;
  states[name] = {info.st_ino, static_cast<std::uint64_t>(info.st_size),
                  info.st_mtim.tv_sec * second + info.st_mtim.tv_nsec};
}

void look_below(FileStates& states, const fs::path& folder, const std::string& name, int depth) {
  constexpr SnapshotLimits limits;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end; entry.increment(problem)) {
    if (states.size() > limits.files) return;
    auto const file = entry->path().filename().string();
    if (file.front() == '.' || file == "__pycache__") continue;
    std::error_code ignored;
    bool const is_folder = entry->is_directory(ignored) && !entry->is_symlink(ignored);
    if (!is_folder) {
      look_at(states, entry->path(), name + "/" + file);
    } else if (depth < limits.depth) {
      look_below(states, entry->path(), name + "/" + file, depth + 1);
    }
  }
}

}  // namespace

FileStates file_states(const fs::path& root, const fs::path& task) {
  FileStates states;
  look_at(states, (task.empty() ? root : task) / "model.py", "model.py");
  look_at(states, root / "model_new.py", "model_new.py");
  look_below(states, root / "kernels", "kernels", 0);
  return states;
}

std::vector<std::string> changed_files(const FileStates& before, const FileStates& now) {
  std::vector<std::string> changed;
  for (auto const& [name, state] : before) {
    auto const found = now.find(name);
    if (found == now.end() || found->second != state) changed.push_back(name);
  }
  for (auto const& [name, state] : now) {
    if (!before.contains(name)) changed.push_back(name);
  }
  std::sort(changed.begin(), changed.end());
  return changed;
}

}  // namespace cuda_agent::workspace
