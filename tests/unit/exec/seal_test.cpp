// Each case runs in a child process: a seal cannot be taken off again.
#include "exec/seal.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <functional>
#include <string>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/seal.hpp"

namespace cuda_agent::exec {
namespace {

std::string bytes_of(const std::string& hexadecimal) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hexadecimal.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hexadecimal.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

/// Whether `holds` is true in a child that has put the filter on itself.
bool sealed(Seal seal, const std::function<bool()>& holds) {
  auto const filter = seal_filter(seal);
  if (!filter) return false;
  pid_t const child = ::fork();
  if (child == 0) {
    auto const report = worker::seal(bytes_of(*filter), false);
    ::_exit(report.filter && holds() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// The same for a process that has no namespaces of its own.
bool sealed_among_others(const std::function<bool()>& holds) {
  pid_t const child = ::fork();
  if (child == 0) {
    auto const filter = seal_filter(Seal::no_new_processes, ::getpid());
    bool const good = filter && worker::seal(bytes_of(*filter), false).filter;
    ::_exit(good && holds() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool refused(long result) { return result == -1 && errno == EPERM; }

bool thread_runs() {
  std::atomic<bool> ran = false;
  try {
    std::thread([&] { ran = true; }).join();
  } catch (const std::system_error&) {
    return false;
  }
  return ran;
}

TEST(Seal, NoProcessIsMade) {
  EXPECT_TRUE(sealed(Seal::no_new_processes, [] { return ::fork() == -1 && errno == EPERM; }));
  EXPECT_TRUE(sealed(Seal::no_new_threads, [] { return ::fork() == -1 && errno == EPERM; }));
}

TEST(Seal, NoProgramIsExecuted) {
  EXPECT_TRUE(sealed(Seal::no_new_processes, [] {
    char name[] = "/bin/true";
    char* const arguments[] = {name, nullptr};
    ::execv(name, arguments);
    return errno == EPERM;
  }));
}

TEST(Seal, NoProcessIsTraced) {
  EXPECT_TRUE(sealed(Seal::no_new_processes, [] { return ::ptrace(PTRACE_TRACEME, 0, 0, 0) == -1 && errno == EPERM; }));
}

TEST(Seal, NothingSendsASignalByItself) {
  EXPECT_TRUE(sealed(Seal::no_new_processes, [] {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGCONT;
    timer_t made{};
    return ::timer_create(CLOCK_MONOTONIC, &event, &made) == -1 && errno == EPERM;
  }));
  EXPECT_TRUE(sealed(Seal::no_new_processes, [] {
    itimerval const soon{{0, 1000}, {0, 1000}};
    return ::setitimer(ITIMER_REAL, &soon, nullptr) == -1 && errno == EPERM;
  }));
  EXPECT_TRUE(sealed(Seal::no_new_processes, [] {
    return ::fcntl(STDIN_FILENO, F_SETSIG, SIGCONT) == -1 && errno == EPERM && ::fcntl(STDIN_FILENO, F_GETFD) != -1;
  }));
  EXPECT_TRUE(sealed(Seal::no_new_processes,
                     [] { return ::fcntl(STDIN_FILENO, F_SETOWN, ::getpid()) == -1 && errno == EPERM; }));
  EXPECT_TRUE(sealed(Seal::no_new_processes, [] {
    return ::prctl(PR_SET_PDEATHSIG, SIGCONT) == -1 && errno == EPERM && ::prctl(PR_GET_DUMPABLE) != -1;
  }));
}

TEST(Seal, OnlyLocalSocketsAreMade) {
  EXPECT_TRUE(sealed(Seal::no_new_processes, [] {
    bool good = ::socket(AF_UNIX, SOCK_DGRAM, 0) != -1;
    for (int const family : {AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_VSOCK}) {
      good = good && ::socket(family, SOCK_DGRAM, 0) == -1 && errno == EPERM;
    }
    return good;
  }));
}

TEST(Seal, AmongOthersSignalsGoToOnesOwnProcessOnly) {
  pid_t const other = ::getpid();
  EXPECT_TRUE(sealed_among_others([] {
    std::signal(SIGUSR1, SIG_IGN);
    return ::kill(::getpid(), SIGUSR1) == 0 && std::raise(SIGUSR1) == 0;
  }));
  for (pid_t const target : {other, 0, -1, -other}) {
    EXPECT_TRUE(sealed_among_others([target] { return refused(::kill(target, 0)); })) << target;
  }
  EXPECT_TRUE(sealed_among_others([other] { return refused(::syscall(SYS_tgkill, other, other, 0)); }));
  EXPECT_TRUE(sealed_among_others([] { return refused(::syscall(SYS_pidfd_send_signal, -1, 0, nullptr, 0)); }));
}

TEST(Seal, AWorkerStaysOnTheProcessorsThatItWasGiven) {
  EXPECT_TRUE(sealed(Seal::no_new_processes, [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    return refused(::sched_setaffinity(0, sizeof set, &set));
  }));
}

TEST(Seal, AmongOthersLimitsAndPrioritiesAreOnesOwnOnly) {
  pid_t const other = ::getpid();
  EXPECT_TRUE(sealed_among_others([] {
    rlimit limit{};
    return ::getrlimit(RLIMIT_CORE, &limit) == 0 && ::setpriority(PRIO_PROCESS, 0, 19) == 0;
  }));
  EXPECT_TRUE(sealed_among_others([other] {
    rlimit limit{};
    return refused(::prlimit(other, RLIMIT_CORE, nullptr, &limit));
  }));
  EXPECT_TRUE(sealed_among_others([other] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    return refused(::sched_setaffinity(other, sizeof set, &set));
  }));
  EXPECT_TRUE(
      sealed_among_others([other] { return refused(::setpriority(PRIO_PROCESS, static_cast<id_t>(other), 19)); }));
  EXPECT_TRUE(sealed_among_others([] { return refused(::setpriority(PRIO_USER, 0, 19)); }));
}

TEST(Seal, AmongOthersOnlyPairsOfStreamsAreMade) {
  EXPECT_TRUE(sealed_among_others([] {
    std::array<int, 2> pair{};
    return refused(::socket(AF_UNIX, SOCK_STREAM, 0)) && ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0 &&
           refused(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair.data()));
  }));
}

TEST(Seal, AmongOthersNothingIsLeftToThem) {
  EXPECT_TRUE(sealed_among_others([] { return refused(::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600)); }));
}

TEST(Seal, ThreadsAreAllowedUntilTheyAreForbidden) {
  EXPECT_TRUE(sealed(Seal::no_new_processes, thread_runs));
  EXPECT_TRUE(sealed(Seal::no_new_threads, [] { return !thread_runs(); }));
}

TEST(Seal, HoldsInThreadsThatWereThereBefore) {
  auto const filter = seal_filter(Seal::no_new_processes);
  ASSERT_TRUE(filter);
  pid_t const child = ::fork();
  if (child == 0) {
    std::atomic<int> stage = 0;
    bool refused = false;
    std::thread other([&] {
      stage.wait(0);
      refused = ::fork() == -1 && errno == EPERM;
    });
    auto const report = worker::seal(bytes_of(*filter), false);
    stage = 1;
    stage.notify_all();
    other.join();
    ::_exit(report.filter && report.threads == 2 && refused ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(Seal, OtherDevicesAndFilesCanStillBeOpenedUnderLandlock) {
  auto const filter = seal_filter(Seal::no_new_processes);
  ASSERT_TRUE(filter);
  pid_t const child = ::fork();
  if (child == 0) {
    std::atomic<int> stage = 0;
    std::thread other([&] { stage.wait(0); });
    auto const report = worker::seal(bytes_of(*filter), true);
    stage = 1;
    stage.notify_all();
    other.join();
    bool const opened = ::open("/dev/null", O_RDWR) >= 0 && ::open("/dev/urandom", O_RDONLY) >= 0 &&
                        ::open("/etc/passwd", O_RDONLY) >= 0;
    // A kernel without landlock says so.
    bool const told = report.devices || !report.why.empty();
    ::_exit(report.filter && opened && told ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace cuda_agent::exec
