#include "exec/descendants.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/fd.hpp"

namespace cuda_agent::exec {

namespace fs = std::filesystem;

namespace {

std::optional<pid_t> as_pid(const std::string& name) {
  pid_t pid = 0;
  auto const [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return pid;
}

std::vector<pid_t> numbered_entries(const fs::path& folder) {
  std::vector<pid_t> numbers;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (auto const number = as_pid(it->path().filename().string())) numbers.push_back(*number);
  }
  return numbers;
}

struct Stat {
  std::string name;
  char state = 'X';  // X: dead
  pid_t parent = 0;
};

// /proc/<pid>/stat is "pid (name) state ppid …", where the name may hold anything.
Stat stat_of(pid_t pid) {
  std::ifstream file(fs::path("/proc") / std::to_string(pid) / "stat");
  std::string stat;
  std::getline(file, stat, '\0');
  std::size_t const name_begin = stat.find('(');
  std::size_t const name_end = stat.rfind(") ");
  if (name_begin == std::string::npos || name_end == std::string::npos || stat.size() < name_end + 5) return {};
  return {stat.substr(name_begin + 1, name_end - name_begin - 1), stat[name_end + 2],
          static_cast<pid_t>(std::strtol(stat.c_str() + name_end + 4, nullptr, 10))};
}

// For kernels without CONFIG_PROC_CHILDREN.
std::vector<pid_t> children_by_scan(pid_t parent) {
  std::vector<pid_t> children = numbered_entries("/proc");
  std::erase_if(children, [parent](pid_t pid) { return stat_of(pid).parent != parent; });
  return children;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  fs::path const tasks = fs::path("/proc") / std::to_string(parent) / "task";
  for (pid_t const task : numbered_entries(tasks)) {
    fs::path const list = tasks / std::to_string(task) / "children";
    std::ifstream file(list);
    std::error_code error;
    // A task that has just ended is no sign of an old kernel.
    if (!file && fs::exists(tasks / std::to_string(task), error)) return children_by_scan(parent);
    for (pid_t child = 0; file >> child;) children.push_back(child);
  }
  return children;
}

std::vector<pid_t> descendants_of(pid_t pid) {
  std::vector<pid_t> all = children_of(pid);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (pid_t const child : children_of(all[i])) {
      if (std::find(all.begin(), all.end(), child) == all.end()) all.push_back(child);
    }
  }
  return all;
}

}  // namespace

void become_subreaper() { [[maybe_unused]] static int const once = ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

LivingChildren& LivingChildren::instance() {
  static LivingChildren children;
  return children;
}

void LivingChildren::remove(pid_t pid) {
  std::lock_guard const guard(m_mutex);
  std::erase(m_pids, pid);
}

bool LivingChildren::has(pid_t pid) const { return std::find(m_pids.begin(), m_pids.end(), pid) != m_pids.end(); }

void kill_tree(pid_t pid) {
  std::vector<pid_t> const under = descendants_of(pid);
  if (::getpgid(pid) == pid) ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);
  for (pid_t const descendant : under) ::kill(descendant, SIGKILL);
}

bool sweep_orphans(pid_t ended, util::Deadline deadline) {
  auto& living = LivingChildren::instance();
  pid_t const own_session = ::getsid(0);
  auto const leave_alone = [&](pid_t pid) {
    pid_t const session = ::getsid(pid);
    return living.has(pid) || session == own_session || (session != ended && living.has(session));
  };
  // Again and again, since killing one makes orphans of what is under it.
  while (true) {
    std::vector<pid_t> orphans;
    {
      auto const guard = living.lock();
      orphans = children_of(::getpid());
      std::erase_if(orphans, leave_alone);
      for (pid_t const orphan : orphans) kill_tree(orphan);
    }
    if (orphans.empty()) return true;
    for (pid_t const orphan : orphans) {
      if (!wait_for_end(orphan, deadline)) return false;
      ::waitpid(orphan, nullptr, WNOHANG);
    }
  }
}

std::vector<std::string> running_orphans() {
  auto& living = LivingChildren::instance();
  pid_t const own_session = ::getsid(0);
  std::vector<std::string> names;
  auto const guard = living.lock();
  for (pid_t const child : children_of(::getpid())) {
    if (living.has(child) || ::getsid(child) == own_session) continue;
    auto const stat = stat_of(child);
    if (stat.state != 'Z' && stat.state != 'X') names.push_back(stat.name);
  }
  return names;
}

char state_of(pid_t pid) { return stat_of(pid).state; }

bool wait_for_end(pid_t pid, util::Deadline deadline) {
  util::Fd const pidfd(open_pidfd(pid));
  while (true) {
    siginfo_t info{};
    int const result = ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    if (result != 0 && errno != EINTR) return true;  // ECHILD: another thread has reaped it
    if (result == 0 && info.si_pid == pid) return true;
    if (deadline.expired()) return false;
    pollfd ended{pidfd.get(), POLLIN, 0};
    ::poll(&ended, 1, pidfd ? deadline.remaining_ms() : std::min(deadline.remaining_ms(), 20));
  }
}

int open_pidfd(pid_t pid) noexcept {
#ifdef SYS_pidfd_open
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));  // always CLOEXEC
#else
  return -1;
#endif
}

}  // namespace cuda_agent::exec
