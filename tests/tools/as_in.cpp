// Runs a command in a situation that this machine is not in, for tests:
//
//     as_in [user=NUMBER] [reach=FOLDER]... [docker] [no-landlock] -- COMMAND [ARGUMENT...]
//
// docker: the capabilities and the system calls that a container has in Docker's default profile, as far as they matter
// to a sandbox. user: an ordinary user of this number, without capabilities. reach: where this folder lies in one that
// is closed to others (root's home), it is all that is seen of that one, by this command alone. Exit code 126 when
// something cannot be had.
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

namespace fs = std::filesystem;

struct Situation {
  std::optional<uid_t> user;
  std::vector<fs::path> reach;
  bool docker = false;
  bool no_landlock = false;
};

struct Release {
  void operator()(void* context) const { ::seccomp_release(context); }
};
using Filter = std::unique_ptr<void, Release>;

// Those of Docker's profile that need a capability which a container does not have, or that it names nowhere.
constexpr std::array refused_by_docker = {
    "acct",
    "add_key",
    "bpf",
    "delete_module",
    "fanotify_init",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "get_mempolicy",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "lookup_dcookie",
    "mbind",
    "mount",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "nfsservctl",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pidfd_getfd",
    "pivot_root",
    "process_madvise",
    "query_module",
    "quotactl",
    "reboot",
    "request_key",
    "set_mempolicy",
    "setns",
    "settimeofday",
    "swapoff",
    "swapon",
    "syslog",
    "umount",
    "umount2",
    "unshare",
    "userfaultfd",
    "vhangup",
    "vmsplice",
};
constexpr std::array capabilities_of_docker = {
    CAP_AUDIT_WRITE,      CAP_CHOWN,   CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,  CAP_KILL,   CAP_MKNOD,
    CAP_NET_BIND_SERVICE, CAP_NET_RAW, CAP_SETFCAP,      CAP_SETGID, CAP_SETPCAP, CAP_SETUID, CAP_SYS_CHROOT,
};

bool failed(const char* what, int number) {
  std::fprintf(stderr, "as_in: %s: %s\n", what, std::strerror(number));
  return false;
}

bool refuse(const Filter& filter, const char* name, int error) {
  int const number = ::seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR || number < 0) return true;  // not on this architecture
  int const code = ::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(static_cast<std::uint32_t>(error)), number, 0);
  return code == 0 || failed(name, -code);
}

bool refuse_new_namespaces(const Filter& filter) {
  for (int const namespace_ :
       {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET}) {
    auto const flag = static_cast<std::uint64_t>(namespace_);
    scmp_arg_cmp const asks{0, SCMP_CMP_MASKED_EQ, flag, flag};
    int const code = ::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, asks);
    if (code < 0) return failed("a rule about clone", -code);
  }
  scmp_arg_cmp const virtual_machines{0, SCMP_CMP_EQ, AF_VSOCK, 0};
  int const code = ::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 1, virtual_machines);
  return code == 0 || failed("a rule about socket", -code);
}

bool put_filter(const Situation& situation) {
  Filter const filter(::seccomp_init(SCMP_ACT_ALLOW));
  if (!filter) return failed("seccomp_init", ENOMEM);
  // Docker sets it only when asked to; without it CAP_SYS_ADMIN is needed here.
  if (::geteuid() == 0) ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_NNP, 0);
  bool good = true;
  if (situation.docker) {
    for (char const* const name : refused_by_docker) good = good && refuse(filter, name, EPERM);
    good = good && refuse(filter, "clone3", ENOSYS) && refuse_new_namespaces(filter);
  }
  if (situation.no_landlock) {
    for (char const* const name : {"landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}) {
      good = good && refuse(filter, name, ENOSYS);
    }
  }
  if (!good) return false;
  int const code = ::seccomp_load(filter.get());
  return code == 0 || failed("seccomp_load", -code);
}

bool keep_capabilities_of_docker() {
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> kept{};
  std::uint64_t all = 0;
  for (int const one : capabilities_of_docker) all |= std::uint64_t{1} << static_cast<unsigned>(one);
  kept[0].permitted = kept[0].effective = static_cast<std::uint32_t>(all);
  kept[1].permitted = kept[1].effective = static_cast<std::uint32_t>(all >> 32U);
  for (int one = 0; ::prctl(PR_CAPBSET_READ, one, 0, 0, 0) >= 0; ++one) {
    if ((all >> static_cast<unsigned>(one) & 1U) != 0) continue;
    if (::prctl(PR_CAPBSET_DROP, one, 0, 0, 0) != 0) return failed("capabilities", errno);
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return ::syscall(SYS_capset, &header, kept.data()) == 0 || failed("capabilities", errno);
}

/// The topmost folder on the way to `path` that others may not enter; empty: none.
fs::path closed_above(const fs::path& path) {
  fs::path above;
  for (auto const& part : path.parent_path()) {
    above /= part;
    std::error_code error;
    auto const allowed = fs::status(above, error).permissions();
    if (!error && (allowed & fs::perms::others_exec) == fs::perms::none) return above;
  }
  return {};
}

/// In a mount namespace of its own: an empty folder over each closed one, and in it what is to be reached.
bool open_up(const std::vector<fs::path>& folders) {
  std::map<fs::path, std::map<fs::path, int>> closed;
  for (auto const& folder : folders) {
    if (fs::path const above = closed_above(folder); !above.empty()) closed[above][folder] = -1;
  }
  if (closed.empty()) return true;
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return failed("a mount namespace", errno);
  }
  for (auto& [above, shown] : closed) {
    for (auto& [place, handle] : shown) {  // before it is covered, and in the new namespace
      handle = ::open(place.c_str(), O_PATH | O_CLOEXEC);
      if (handle < 0) return failed(place.c_str(), errno);
    }
    if (::mount("tmpfs", above.c_str(), "tmpfs", 0, "mode=0755") != 0) return failed(above.c_str(), errno);
    for (auto const& [place, handle] : shown) {
      std::error_code error;
      fs::create_directories(place, error);
      std::string const source = "/proc/self/fd/" + std::to_string(handle);
      if (::mount(source.c_str(), place.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
        return failed(place.c_str(), errno);
      }
    }
  }
  return true;
}

bool become(uid_t user) {
  if (user == ::geteuid()) return true;
  bool const good =
      ::setgroups(0, nullptr) == 0 && ::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0;
  return good || failed("another user", errno);
}

bool enter(const Situation& situation) {
  if (!open_up(situation.reach)) return false;
  if ((situation.docker || situation.no_landlock) && !put_filter(situation)) return false;
  if (situation.docker && ::geteuid() == 0 && !keep_capabilities_of_docker()) return false;
  return !situation.user || become(*situation.user);
}

std::optional<uid_t> number_in(std::string_view word) {
  uid_t number = 0;
  auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  Situation situation;
  int at = 1;
  for (; at < argc && argv[at] != std::string_view("--"); ++at) {
    std::string_view const word = argv[at];
    if (word.starts_with("user=")) situation.user = number_in(word.substr(5));
    situation.docker = situation.docker || word == "docker";
    situation.no_landlock = situation.no_landlock || word == "no-landlock";
    if (word.starts_with("reach=")) situation.reach.emplace_back(word.substr(6));
    bool const known = word.starts_with("reach=") || (word.starts_with("user=") && situation.user) ||
                       word == "docker" || word == "no-landlock";
    if (!known) at = argc;
  }
  if (at + 1 >= argc) {
    std::fputs("usage: as_in [user=NUMBER] [reach=FOLDER]... [docker] [no-landlock] -- COMMAND [ARGUMENT...]\n",
               stderr);
    return 2;
  }
  if (!enter(situation)) return 126;
  ::execvp(argv[at + 1], argv + at + 1);
  failed(argv[at + 1], errno);
  return 127;
}
