// What of a workspace has changed, from the file system's own account: for those who wait for the next save.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace cuda_agent::workspace {

struct FileState {
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  ///< nanoseconds
  bool operator==(const FileState&) const = default;
};

/// The files that a snapshot would take, by path relative to `root`. model.py is that of `task` unless it is empty.
/// What cannot be looked at is as if it were not there. Reads no content, so that it can be asked ten times a second,
/// on a network file system too, which tells nobody of changes made elsewhere.
using FileStates = std::map<std::string, FileState>;
FileStates file_states(const std::filesystem::path& root, const std::filesystem::path& task);

/// Paths that are new, gone, or not as they were; sorted.
std::vector<std::string> changed_files(const FileStates& before, const FileStates& now);

}  // namespace cuda_agent::workspace
