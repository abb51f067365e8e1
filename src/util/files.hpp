// Files: whole-file reads with a limit, atomic writes, temporary folders. Every error names the path.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "cuda_agent/error.hpp"

namespace cuda_agent::util {

/// The content of a regular file. Errors (environment_error): missing, not a regular file, not readable, longer than
/// `limit` bytes.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit);

/// Replaces `path` atomically: a temporary file beside it, fsync, rename. Mode 0644 less the umask; an existing
/// file's mode is kept. Errors: environment_error ("disk full", "read-only", "no permission", no such folder).
Result<void> write_file(const std::filesystem::path& path, std::string_view content);

/// Appends `line` and a newline in one O_APPEND write, so that lines of several processes never mix. Creates the
/// file. Errors: as write_file.
Result<void> append_line(const std::filesystem::path& path, std::string_view line);

/// Size and time of the last change, as text that is another one when the file has changed; "absent".
std::string file_state(const std::filesystem::path& path);

/// mkdir -p. Errors: as write_file.
Result<void> make_folders(const std::filesystem::path& path);

/// A folder of mode 0700 that is removed with its content on destruction.
class TemporaryFolder {
 public:
  /// Makes `parent`/`prefix`XXXXXX. `parent` must exist.
  static Result<TemporaryFolder> make(const std::filesystem::path& parent, std::string_view prefix);

  TemporaryFolder() = default;
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return m_path; }
  /// From now on nobody removes it.
  std::filesystem::path release() { return std::exchange(m_path, {}); }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : m_path(std::move(path)) {}
  void remove() noexcept;
  std::filesystem::path m_path;
};

/// The running program's file (from /proc/self/exe); empty when /proc is not there.
std::filesystem::path own_executable();

}  // namespace cuda_agent::util
