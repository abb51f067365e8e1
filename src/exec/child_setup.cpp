#include "exec/child_setup.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/confinement.hpp"

namespace cuda_agent::exec {

namespace {

[[noreturn]] void report_and_exit(const ChildSetup& setup, SetupStage stage) noexcept {
  SetupFailure const failure{stage, errno};
  [[maybe_unused]] ssize_t const written = ::write(setup.failure_pipe, &failure, sizeof failure);
  ::_exit(127);
}

// The supervisor's handlers must not run here, and what it ignores shall not be ignored by the command.
void reset_signals() noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &action, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void die_with_parent(pid_t parent) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // It may have died before the call above.
  if (::getppid() != parent) ::_exit(127);
}

void close_all_on_exec() noexcept {
  constexpr unsigned c_close_on_exec = 1U << 2U;  // CLOSE_RANGE_CLOEXEC
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, 3U, ~0U, c_close_on_exec) == 0) return;
#endif
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  int const end = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1U << 20U));
  for (int fd = 3; fd < end; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// First every source to a number above all targets, so that no dup2 overwrites a source that is still needed and none
// is onto itself (which would keep CLOEXEC).
bool place_descriptors(ChildSetup& setup) noexcept {
  int above = 3;
  for (auto const& [source, target] : setup.inherit) above = std::max(above, target + 1);
  auto const lift = [above](int& fd) {
    fd = ::fcntl(fd, F_DUPFD_CLOEXEC, above);
    return fd >= 0;
  };
  int const failure_pipe = ::fcntl(setup.failure_pipe, F_DUPFD_CLOEXEC, above);
  if (failure_pipe < 0) return false;
  setup.failure_pipe = failure_pipe;
  if (!lift(setup.input) || !lift(setup.output)) return false;
  if (setup.landlock >= 0 && !lift(setup.landlock)) return false;
  for (auto& [source, target] : setup.inherit) {
    if (!lift(source)) return false;
  }
  close_all_on_exec();
  if (::dup2(setup.input, 0) < 0 || ::dup2(setup.output, 1) < 0 || ::dup2(setup.output, 2) < 0) return false;
  return std::all_of(setup.inherit.begin(), setup.inherit.end(),
                     [](auto const& pair) { return ::dup2(pair.first, pair.second) >= 0; });
}

template <typename Resource>
bool set_limit(Resource resource, std::uint64_t value, std::uint64_t extra_hard = 0) noexcept {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return false;
  // An ordinary user cannot raise the hard limit; one that is lower than asked for confines enough.
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, value + extra_hard);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, value);
  return ::setrlimit(resource, &limit) == 0;
}

bool set_limits(const Limits& limits) noexcept {
  bool good = set_limit(RLIMIT_CORE, limits.core);
  if (limits.address_space) good = good && set_limit(RLIMIT_AS, *limits.address_space);
  if (limits.file_size) good = good && set_limit(RLIMIT_FSIZE, *limits.file_size);
  if (limits.open_files) good = good && set_limit(RLIMIT_NOFILE, *limits.open_files);
  // SIGXCPU at the limit, SIGKILL a second later for who catches it.
  if (limits.cpu_seconds) good = good && set_limit(RLIMIT_CPU, *limits.cpu_seconds, 1);
  return good;
}

}  // namespace

void become_command(ChildSetup& setup) noexcept {
  // A session of its own: no controlling terminal (TIOCSTI, Ctrl-C), and a number that names all that belongs to it.
  ::setsid();
  die_with_parent(setup.parent);
  reset_signals();
  if (!place_descriptors(setup)) report_and_exit(setup, SetupStage::inherit);
  if (::chdir(setup.cwd) != 0) report_and_exit(setup, SetupStage::enter_folder);
  if (setup.no_new_privs) ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (!set_limits(setup.limits)) report_and_exit(setup, SetupStage::limits);
  if (setup.landlock >= 0 && confine_self(setup.landlock) != 0) report_and_exit(setup, SetupStage::confine);
  if (setup.no_capabilities && !drop_capabilities()) report_and_exit(setup, SetupStage::confine);
  ::execve(setup.argv[0], setup.argv, setup.envp);
  report_and_exit(setup, SetupStage::execute);
}

}  // namespace cuda_agent::exec
