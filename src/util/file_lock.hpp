// A lock between processes that says who holds it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "cuda_agent/error.hpp"
#include "util/deadline.hpp"
#include "util/fd.hpp"

namespace cuda_agent::util {

/// An exclusive flock(2), freed on destruction or when the process dies. The file stays; while the lock is held its
/// content names the holder, e.g. "pid 4711: cuda-agent run agent_workdir, since 2025-01-31T12:34:56Z".
class FileLock {
 public:
  /// Takes the lock on `file` (created with mode 0666 less the umask; its folder must exist). When another holds it,
  /// `waiting` (may be empty) is called once with the holder's text. Errors: timeout (names file and holder),
  /// interrupted, environment_error (cannot open).
  static Result<FileLock> acquire(const std::filesystem::path& file, std::string_view holder_text, Deadline deadline,
                                  const std::function<void(const std::string& holder)>& waiting);

  FileLock() = default;
  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

  bool held() const { return static_cast<bool>(m_file); }
  void release() noexcept;

 private:
  explicit FileLock(Fd file) : m_file(std::move(file)) {}
  Fd m_file;
};

}  // namespace cuda_agent::util
