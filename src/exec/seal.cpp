#include "exec/seal.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <asm/sockios.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <spdlog/fmt/fmt.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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

}  // namespace

Result<std::string> seal_filter(Seal seal) {
  Context const context(::seccomp_init(SCMP_ACT_ALLOW));
  if (!context) return failed("seccomp_init", ENOMEM);
  int worst = 0;
  auto const refuse = [&](int number, int error) {
    int const code = ::seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(static_cast<std::uint32_t>(error)), number, 0);
    if (code < 0) worst = code;
  };
  for (char const* const name : forbidden) {
    int const number = ::seccomp_syscall_resolve_name(name);
    // A name that this architecture or this libseccomp does not have.
    if (number != __NR_SCMP_ERROR && number >= 0) refuse(number, EPERM);
  }
  for (RefusedValue const& one : refused_values) {
    scmp_arg_cmp const equal{one.argument, SCMP_CMP_MASKED_EQ, 0xffffffff, one.value};
    int const code = ::seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EPERM), one.call, 1, equal);
    if (code < 0) worst = code;
  }
  scmp_arg_cmp const not_local{0, SCMP_CMP_NE, AF_UNIX, 0};
  if (int const code = ::seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, not_local);
      code < 0)
    worst = code;
  // Its flags lie in memory, where no filter sees them: glibc then uses clone.
  refuse(SCMP_SYS(clone3), ENOSYS);
  if (seal == Seal::no_new_threads) {
    refuse(SCMP_SYS(clone), EPERM);
  } else {
    // The first argument; SCMP_A0 would make the same by a compound literal, which C++ does not have.
    scmp_arg_cmp const no_thread{0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0};
    int const code = ::seccomp_rule_add(context.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, no_thread);
    if (code < 0) worst = code;
  }
  if (worst < 0) return failed("a rule", -worst);
  return exported(context);
}

}  // namespace cuda_agent::exec
