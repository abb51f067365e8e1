#include "exec/seal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <span>

#include <asm/sockios.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <spdlog/fmt/fmt.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/fd.hpp"

namespace cuda_agent::exec {
namespace {

struct Release {
  void operator()(void* context) const { ::seccomp_release(context); }
};
using Context = std::unique_ptr<void, Release>;

// What starts programs, looks into other processes, or leads around this filter.
constexpr std::array forbidden = {
    "execve",
    "execveat",
    "fork",
    "vfork",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "pidfd_getfd",
    "kcmp",
    "userfaultfd",
    "perf_event_open",
    "bpf",
    "io_uring_setup",
    "io_uring_enter",
    "mount",
    "umount2",
    "pivot_root",
    "move_mount",
    "open_tree",
    "fsopen",
    "fsmount",
    "unshare",
    "setns",
    "keyctl",
    "add_key",
    "request_key",
    // The judge has given it processors for as long as it is timed.
    "sched_setaffinity",
    "init_module",
    "finit_module",
    "kexec_load",
    // What sends signals by itself: SIGCONT undoes the SIGSTOP under which a worker waits.
    "timer_create",
    "setitimer",
    "alarm",
    "mq_notify",
};

/// A value of an argument for which a system call is refused: signals from files, and from the parent's end.
struct RefusedValue {
  int call;
  unsigned argument;
  std::uint64_t value;
};
constexpr std::array refused_values = {
    RefusedValue{SCMP_SYS(fcntl), 1, F_SETOWN},         RefusedValue{SCMP_SYS(fcntl), 1, F_SETOWN_EX},
    RefusedValue{SCMP_SYS(fcntl), 1, F_SETSIG},         RefusedValue{SCMP_SYS(fcntl), 1, F_SETLEASE},
    RefusedValue{SCMP_SYS(fcntl), 1, F_NOTIFY},         RefusedValue{SCMP_SYS(ioctl), 1, FIOSETOWN},
    RefusedValue{SCMP_SYS(ioctl), 1, SIOCSPGRP},        RefusedValue{SCMP_SYS(ioctl), 1, FIOASYNC},
    RefusedValue{SCMP_SYS(prctl), 0, PR_SET_PDEATHSIG},
};

// What outlives a process that has no IPC namespace of its own, or reaches others through it; and sockets with names.
constexpr std::array forbidden_among_others = {
    "shmget", "shmat",   "shmctl", "semget",  "semop", "semtimedop",        "semctl", "msgget", "msgsnd", "msgrcv",
    "msgctl", "mq_open", "tkill",  "connect", "bind",  "pidfd_send_signal", "socket",
};

constexpr std::uint64_t ioprio_who_process = 1;  // as in linux/ioprio.h, which older headers do not have

/// An argument that must have one value: what is done to others has another one.
struct OnlyValue {
  int call;
  unsigned argument;
  std::uint64_t value;
};
constexpr std::array only_itself = {
    OnlyValue{SCMP_SYS(prlimit64), 0, 0},
    OnlyValue{SCMP_SYS(sched_setscheduler), 0, 0},
    OnlyValue{SCMP_SYS(sched_setparam), 0, 0},
    OnlyValue{SCMP_SYS(sched_setattr), 0, 0},
    OnlyValue{SCMP_SYS(setpriority), 0, PRIO_PROCESS},
    OnlyValue{SCMP_SYS(setpriority), 1, 0},
    OnlyValue{SCMP_SYS(ioprio_set), 0, ioprio_who_process},
    OnlyValue{SCMP_SYS(ioprio_set), 1, 0},
    OnlyValue{SCMP_SYS(migrate_pages), 0, 0},
    OnlyValue{SCMP_SYS(move_pages), 0, 0},
};
constexpr std::array signals_to_itself = {SCMP_SYS(kill), SCMP_SYS(tgkill), SCMP_SYS(rt_sigqueueinfo),
                                          SCMP_SYS(rt_tgsigqueueinfo)};

tl::unexpected<Error> failed(std::string_view what, int number) {
  return fail(Outcome::environment_error,
              fmt::format("cannot make the workers' system-call filter: {}: {}", what, std::strerror(number)),
              {"libseccomp 2.5 or newer is expected: see docs/dependencies.md"});
}

Result<std::string> exported(const Context& context) {
  util::Fd const file(::memfd_create("cuda-agent-filter", MFD_CLOEXEC));
  if (!file) return failed("memfd_create", errno);
  if (int const code = ::seccomp_export_bpf(context.get(), file.get()); code < 0) return failed("export", -code);
  std::string text;
  std::array<unsigned char, 4096> bytes{};
  ::lseek(file.get(), 0, SEEK_SET);
  for (;;) {
    ssize_t const got = ::read(file.get(), bytes.data(), bytes.size());
    if (got < 0) return failed("read", errno);
    if (got == 0) return text;
    for (ssize_t i = 0; i < got; ++i) text += fmt::format("{:02x}", bytes[static_cast<std::size_t>(i)]);
  }
}

/// 0, or libseccomp's code for what it could not add.
int refuse(const Context& context, int call, scmp_arg_cmp when) {
  return ::seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EPERM), call, 1, when);
}

int refuse_all(const Context& context, std::span<const char* const> names) {
  int worst = 0;
  for (char const* const name : names) {
    int const number = ::seccomp_syscall_resolve_name(name);
    // A name that this architecture or this libseccomp does not have.
    if (number == __NR_SCMP_ERROR || number < 0) continue;
    worst = std::min(worst, ::seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EPERM), number, 0));
  }
  return worst;
}

int leave_others_alone(const Context& context, pid_t self) {
  int worst = refuse_all(context, forbidden_among_others);
  for (OnlyValue const& one : only_itself) {
    worst = std::min(worst, refuse(context, one.call, {one.argument, SCMP_CMP_NE, one.value, 0}));
  }
  for (int const call : signals_to_itself) {
    worst = std::min(worst, refuse(context, call, {0, SCMP_CMP_NE, static_cast<std::uint64_t>(self), 0}));
  }
  // A pair's ends send to whatever name they are given, unless they are streams.
  constexpr std::uint64_t type = 0xf;
  for (std::uint64_t const kind : {SOCK_DGRAM, SOCK_RAW}) {
    worst = std::min(worst, refuse(context, SCMP_SYS(socketpair), {1, SCMP_CMP_MASKED_EQ, type, kind}));
  }
  return worst;
}

}  // namespace

Result<std::string> seal_filter(Seal seal, std::optional<pid_t> among_others) {
  Context const context(::seccomp_init(SCMP_ACT_ALLOW));
  if (!context) return failed("seccomp_init", ENOMEM);
  int worst = refuse_all(context, forbidden);
  for (RefusedValue const& one : refused_values) {
    worst = std::min(worst, refuse(context, one.call, {one.argument, SCMP_CMP_MASKED_EQ, 0xffffffff, one.value}));
  }
  if (among_others) {
    worst = std::min(worst, leave_others_alone(context, *among_others));
  } else {
    worst = std::min(worst, refuse(context, SCMP_SYS(socket), {0, SCMP_CMP_NE, AF_UNIX, 0}));
  }
  // Its flags lie in memory, where no filter sees them: glibc then uses clone.
  worst = std::min(worst, ::seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0));
  // The first argument; SCMP_A0 would make the same by a compound literal, which C++ does not have.
  scmp_arg_cmp const no_thread{0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0};
  worst = std::min(worst, seal == Seal::no_new_threads
                              ? ::seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 0)
                              : refuse(context, SCMP_SYS(clone), no_thread));
  if (worst < 0) return failed("a rule", -worst);
  return exported(context);
}

}  // namespace cuda_agent::exec
