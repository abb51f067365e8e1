#include "util/file_lock.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/interrupt.hpp"
#include "util/text.hpp"
#include "util/time.hpp"

namespace cuda_agent::util {

namespace {

/// A sticky folder, such as /tmp, is one that others write to as well.
bool is_shared(const std::filesystem::path& folder) {
  struct stat facts {};
  return ::stat(folder.empty() ? "." : folder.c_str(), &facts) == 0 && (facts.st_mode & S_ISVTX) != 0;
}

// Without O_CREAT first: in a sticky folder the kernel refuses it for another user's file (fs.protected_regular).
// Read-only last: flock needs no more, we just cannot leave our name then.
Fd open_lock_file(const std::filesystem::path& file, bool shared) {
  constexpr int c_flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  Fd fd(::open(file.c_str(), O_RDWR | c_flags));
  if (!fd && errno == ENOENT) {
    fd = Fd(::open(file.c_str(), O_RDWR | O_CREAT | c_flags, 0666));
    // The umask has made it smaller, and whoever else waits for it has to open it.
    if (fd && shared) (void)::fchmod(fd.get(), 0666);
  }
  if (!fd && (errno == EACCES || errno == EROFS)) fd = Fd(::open(file.c_str(), O_RDONLY | c_flags));
  return fd;
}

/// 0, or why nothing is to be written there: the name may be another user's link to a file of ours.
int unfit(int fd) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return errno;
  if (!S_ISREG(facts.st_mode)) return S_ISDIR(facts.st_mode) ? EISDIR : EINVAL;
  return facts.st_nlink > 1 ? EMLINK : 0;
}

std::string read_holder(int fd) {
  std::array<char, 512> buffer{};
  ssize_t const got = ::pread(fd, buffer.data(), buffer.size(), 0);
  if (got <= 0) return "another process";
  return escape_untrusted(trim({buffer.data(), static_cast<std::size_t>(got)}));
}

void write_holder(int fd, std::string_view text) {
  std::string const line = fmt::format("pid {}: {}, since {}\n", ::getpid(), text, utc_now());
  // Only for people who wait; a full disk shall not keep us from working.
  if (::ftruncate(fd, 0) != 0) return;
  [[maybe_unused]] ssize_t const written = ::pwrite(fd, line.data(), line.size(), 0);
}

// True when taken, false when another holds it, none on an error (errno).
std::optional<bool> try_lock(int fd) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK || errno == EINTR) return false;
  return std::nullopt;
}

// flock has no timed wait and no descriptor to poll: look again every 20 ms, woken early by an interrupt.
void wait_a_step(Deadline deadline) {
  pollfd wake{interrupt_fd(), POLLIN, 0};
  ::poll(&wake, 1, std::min(20, deadline.remaining_ms()));
}

}  // namespace

Result<FileLock> FileLock::acquire(const std::filesystem::path& file, std::string_view holder_text, Deadline deadline,
                                   const std::function<void(const std::string& holder)>& waiting) {
  auto const error = [&file](int number) {
    return fail(Outcome::environment_error,
                fmt::format("cannot lock {}: {}", file.string(), std::generic_category().message(number)),
                {"check that its folder exists and can be written"});
  };
  bool const shared = is_shared(file.parent_path());
  Fd fd = open_lock_file(file, shared);
  if (!fd) return error(errno);
  if (int const number = shared ? unfit(fd.get()) : 0; number != 0) {
    return fail(Outcome::environment_error,
                fmt::format("cannot lock {}: it is not a file of its own: {}", file.string(),
                            std::generic_category().message(number)),
                {"see who has put it there (ls -li), and remove it"});
  }

  for (bool told = false;;) {
    auto const taken = try_lock(fd.get());
    if (!taken) return error(errno);
    if (*taken) {
      write_holder(fd.get(), holder_text);
      return FileLock(std::move(fd));
    }
    if (!told && waiting) waiting(read_holder(fd.get()));
    told = true;
    if (interrupted()) return fail(interrupted_error());
    if (deadline.expired()) {
      Error late(Outcome::timeout,
                 fmt::format("the lock {} was not free in time; {} holds it", file.string(), read_holder(fd.get())),
                 {"wait for the other process, or end it"});
      late.fault = Fault::environment;
      return fail(std::move(late));
    }
    wait_a_step(deadline);
  }
}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this != &other) {
    release();
    m_file = std::move(other.m_file);
  }
  return *this;
}

FileLock::~FileLock() { release(); }

void FileLock::release() noexcept {
  if (!m_file) return;
  // A stale name would be shown by whoever looks between two holders.
  [[maybe_unused]] int const truncated = ::ftruncate(m_file.get(), 0);
  m_file.reset();
}

}  // namespace cuda_agent::util
