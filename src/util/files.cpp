#include "util/files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fd.hpp"
#include "util/random.hpp"

namespace cuda_agent::util {

namespace fs = std::filesystem;

namespace {

tl::unexpected<Error> file_error(std::string_view verb, const fs::path& path, int error) {
  std::string reason = std::generic_category().message(error);
  std::vector<std::string> hints;
  if (error == ENOSPC || error == EDQUOT) {
    reason = error == ENOSPC ? "disk full" : "disk full (quota)";
    hints.emplace_back("free some space on that file system, then try again");
  } else if (error == EROFS) {
    hints.emplace_back("the file system is mounted read-only; use a folder that can be written");
  } else if (error == EACCES || error == EPERM) {
    hints.emplace_back("check owner and mode of the file and of its folder");
  }
  return fail(Outcome::environment_error, fmt::format("cannot {} {}: {}", verb, path.string(), reason),
              std::move(hints));
}

// 0 or errno.
int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    ssize_t const written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// 0 or errno.
int fill_and_rename(const Fd& fd, const fs::path& temporary, const fs::path& path, std::string_view content) {
  struct stat existing {};
  if (::stat(path.c_str(), &existing) == 0 && ::fchmod(fd.get(), existing.st_mode & 07777) != 0) return errno;
  if (int const error = write_all(fd.get(), content)) return error;
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return errno;
  return ::rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
}

// A candidate may have taken its own folders' permissions away; without them nothing below can be removed.
void make_folders_writable(const fs::path& root) {
  std::error_code ignored;
  fs::permissions(root, fs::perms::owner_all, fs::perm_options::add, ignored);
  std::vector<fs::path> folders{root};
  while (!folders.empty()) {
    fs::path const folder = std::move(folders.back());
    folders.pop_back();
    for (fs::directory_iterator it(folder, ignored), end; it != end; it.increment(ignored)) {
      if (it->symlink_status(ignored).type() != fs::file_type::directory) continue;
      fs::permissions(it->path(), fs::perms::owner_all, fs::perm_options::add, ignored);
      folders.push_back(it->path());
    }
  }
}

}  // namespace

Result<std::string> read_file(const fs::path& path, std::size_t limit) {
  // O_NONBLOCK: a FIFO put in a file's place shall not make us wait.
  Fd const fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return file_error("read", path, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return file_error("read", path, errno);
  if (S_ISDIR(status.st_mode)) return file_error("read", path, EISDIR);
  if (!S_ISREG(status.st_mode)) {
    return fail(Outcome::environment_error, fmt::format("cannot read {}: not a regular file", path.string()));
  }

  std::string content;
  std::size_t filled = 0;
  content.resize(std::min(limit, static_cast<std::size_t>(status.st_size)) + 1);
  while (true) {
    ssize_t const got = ::read(fd.get(), content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error("read", path, errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
    if (filled > limit) {
      return fail(Outcome::environment_error,
                  fmt::format("cannot read {}: longer than the limit of {} bytes", path.string(), limit));
    }
    // Files of /proc say that their size is 0, and any file may grow while it is read.
    if (filled == content.size()) content.resize(std::min(limit + 1, 2 * filled + 4096));
  }
  content.resize(filled);
  return content;
}

Result<void> write_file(const fs::path& path, std::string_view content) {
  fs::path temporary = path;
  temporary += fmt::format(".{:016x}.tmp", random_u64());
  Fd const fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) return file_error("write", path, errno);
  if (int const error = fill_and_rename(fd, temporary, path, content)) {
    ::unlink(temporary.c_str());
    return file_error("write", path, error);
  }
  return {};
}

Result<void> append_line(const fs::path& path, std::string_view line) {
  Fd const fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) return file_error("append to", path, errno);
  std::string text(line);
  text += '\n';
  ssize_t written = 0;
  do {
    written = ::write(fd.get(), text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return file_error("append to", path, errno);
  if (static_cast<std::size_t>(written) != text.size()) return file_error("append to", path, ENOSPC);
  return {};
}

std::string file_state(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return "absent";
  return fmt::format("{}:{}.{}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

Result<void> make_folders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  // An existing file in the way is no error for the library.
  if (!error && !fs::is_directory(path, error)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) return file_error("make the folder", path, error.value());
  return {};
}

Result<TemporaryFolder> TemporaryFolder::make(const fs::path& parent, std::string_view prefix) {
  std::string name = (parent / prefix).string() + "XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) return file_error("make a temporary folder in", parent, errno);
  return TemporaryFolder(fs::path(name));
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept : m_path(std::move(other.m_path)) {
  other.m_path.clear();
}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  if (this != &other) {
    remove();
    m_path = std::move(other.m_path);
    other.m_path.clear();
  }
  return *this;
}

TemporaryFolder::~TemporaryFolder() { remove(); }

void TemporaryFolder::remove() noexcept {
  if (m_path.empty()) return;
  try {
    std::error_code error;
    fs::remove_all(m_path, error);
    if (error) {
      make_folders_writable(m_path);
      fs::remove_all(m_path, error);
    }
  } catch (const std::exception& failure) {
    // Out of memory at most. A folder left behind is no reason to end the program.
    std::fputs("cuda-agent: a temporary folder could not be removed\n", stderr);
  }
  m_path.clear();
}

fs::path own_executable() {
  std::error_code error;
  fs::path target = fs::read_symlink("/proc/self/exe", error);
  if (error) return {};
  // The kernel's mark for a file that was replaced while it ran; the new one is the better answer.
  static constexpr std::string_view c_deleted = " (deleted)";
  std::string const text = target.string();
  if (text.ends_with(c_deleted)) return text.substr(0, text.size() - c_deleted.size());
  return target;
}

}  // namespace cuda_agent::util
