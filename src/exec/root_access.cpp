#include "exec/root_access.hpp"

#include <system_error>

#include <sys/stat.h>

namespace cuda_agent::exec {

namespace fs = std::filesystem;

std::vector<fs::path> private_places(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (fs::recursive_directory_iterator const end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    auto const status = entry->symlink_status(gone);
    if (gone || fs::is_symlink(status)) continue;
    auto const needed = fs::is_directory(status) ? fs::perms::others_read | fs::perms::others_exec  //
                                                 : fs::perms::others_read;
    if ((status.permissions() & needed) == needed) continue;
    found.push_back(entry->path());
    entry.disable_recursion_pending();
  }
  return found;
}

fs::path closed_to_root(const fs::path& path) {
  fs::path above;
  for (auto const& part : path.lexically_normal()) {
    above /= part;
    struct stat facts {};
    if (::stat(above.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) continue;
    auto const needed = facts.st_uid == 0 ? S_IXUSR : facts.st_gid == 0 ? S_IXGRP : S_IXOTH;
    if ((facts.st_mode & needed) == 0) return above;
  }
  return {};
}

}  // namespace cuda_agent::exec
