#include "exec/private_places.hpp"

#include <system_error>

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

}  // namespace cuda_agent::exec
