#include "seal.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace worker {
namespace {

// linux/landlock.h as of its first version, which kernel headers older than 5.13 do not have. The numbers are the same
// on every architecture.
constexpr long landlock_create_ruleset = 444;
constexpr long landlock_add_rule = 445;
constexpr long landlock_restrict_self = 446;
constexpr int rule_path_beneath = 1;
constexpr std::uint64_t write_file = 1U << 1U;
constexpr std::uint64_t read_file = 1U << 2U;

struct RulesetAttributes {
  std::uint64_t handled;
};
struct __attribute__((packed)) PathBeneath {
  std::uint64_t allowed;
  std::int32_t parent;
};

constexpr std::chrono::milliseconds patience{500};

std::string reason(const char* what, int number) { return std::string(what) + ": " + std::strerror(number); }

std::vector<std::string> names_in(const char* folder) {
  std::vector<std::string> names;
  DIR* const stream = ::opendir(folder);
  if (stream == nullptr) {
    return names;
  }
  while (dirent const* const entry = ::readdir(stream)) {
    std::string const name = entry->d_name;
    if (name != "." && name != "..") {
      names.push_back(name);
    }
  }
  ::closedir(stream);
  return names;
}

void allow(int ruleset, const std::string& path) {
  int const place = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (place < 0) {
    return;  // a name that has gone, or leads nowhere
  }
  PathBeneath const rule{read_file | write_file, place};
  (void)::syscall(landlock_add_rule, ruleset, rule_path_beneath, &rule, 0);
  ::close(place);
}

/// All may be read and written but device nodes of NVIDIA. -1 with errno where the kernel has no landlock.
int make_ruleset() {
  RulesetAttributes const attributes{read_file | write_file};
  int const ruleset = static_cast<int>(::syscall(landlock_create_ruleset, &attributes, sizeof attributes, 0));
  if (ruleset < 0) {
    return -1;
  }
  for (std::string const& name : names_in("/")) {
    if (name != "dev") {
      allow(ruleset, "/" + name);
    }
  }
  for (std::string const& name : names_in("/dev")) {
    if (name.rfind("nvidia", 0) != 0) {
      allow(ruleset, "/dev/" + name);
    }
  }
  return ruleset;
}

// Landlock holds for the thread that asks for it. The others are asked by a signal.
std::atomic<int> g_ruleset{-1};
std::atomic<int> g_restricted{0};

void restrict_this_thread(int /*signal*/) {
  int const before = errno;
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::syscall(landlock_restrict_self, g_ruleset.load(), 0) == 0) {
    g_restricted.fetch_add(1);
  }
  errno = before;
}

std::vector<pid_t> threads() {
  std::vector<pid_t> numbers;
  for (std::string const& name : names_in("/proc/self/task")) {
    numbers.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return numbers;
}

void restrict_devices(SealReport& report) {
  int const ruleset = make_ruleset();
  if (ruleset < 0) {
    report.why.push_back(reason("landlock is not there", errno));
    return;
  }
  g_ruleset = ruleset;
  g_restricted = 0;
  int const number = SIGRTMIN + 7;
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = restrict_this_thread;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, &before);
  auto const self = static_cast<pid_t>(::syscall(SYS_gettid));
  int asked = 1;
  for (pid_t const thread : threads()) {
    if (thread != self && ::syscall(SYS_tgkill, ::getpid(), thread, number) == 0) {
      ++asked;
    }
  }
  restrict_this_thread(0);
  auto const end = std::chrono::steady_clock::now() + patience;
  while (g_restricted < asked && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  int const restricted = g_restricted;
  // Where a thread blocks the signal it stays pending there: the handler must remain for it.
  if (restricted == asked) {
    ::sigaction(number, &before, nullptr);
    ::close(ruleset);
  }
  report.devices = restricted == asked;
  if (!report.devices) {
    report.why.push_back("landlock holds in " + std::to_string(restricted) + " of " + std::to_string(asked) +
                         " threads");
  }
}

void put_filter(const std::string& filter, SealReport& report) {
  if (filter.empty() || filter.size() % sizeof(sock_filter) != 0) {
    throw std::invalid_argument("the filter is not an array of sock_filter");
  }
  std::vector<sock_filter> instructions(filter.size() / sizeof(sock_filter));
  std::memcpy(instructions.data(), filter.data(), filter.size());
  sock_fprog const program{static_cast<unsigned short>(instructions.size()), instructions.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  long const status = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
  report.filter = status == 0;
  if (status > 0) {
    report.why.push_back("thread " + std::to_string(status) + " has another system-call filter");
  } else if (status < 0) {
    report.why.push_back(reason("seccomp filters are not there", errno));
  }
}

}  // namespace

void hide() { ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

SealReport seal(const std::string& filter, bool devices) {
  SealReport report;
  if (devices) {
    restrict_devices(report);
  }
  put_filter(filter, report);
  report.threads = static_cast<int>(threads().size());
  return report;
}

}  // namespace worker
