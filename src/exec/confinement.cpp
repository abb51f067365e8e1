#include "exec/confinement.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <linux/capability.h>
#include <spdlog/fmt/fmt.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/root_access.hpp"

namespace cuda_agent::exec {

namespace fs = std::filesystem;

namespace {

// As in linux/landlock.h, which the headers of older kernels do not have whole. The numbers are the same on every
// architecture.
constexpr long create_ruleset_call = 444;
constexpr long add_rule_call = 445;
constexpr long restrict_self_call = 446;
constexpr unsigned version_flag = 1;
constexpr int rule_path_beneath = 1;

constexpr std::uint64_t execute = 1U << 0U;
constexpr std::uint64_t write_file = 1U << 1U;
constexpr std::uint64_t read_file = 1U << 2U;
constexpr std::uint64_t read_dir = 1U << 3U;
constexpr std::uint64_t remove_dir = 1U << 4U;
constexpr std::uint64_t remove_file = 1U << 5U;
constexpr std::uint64_t make_dir = 1U << 7U;
constexpr std::uint64_t make_reg = 1U << 8U;
constexpr std::uint64_t make_sym = 1U << 12U;
constexpr std::uint64_t first_version = (1U << 13U) - 1;
constexpr std::uint64_t refer = 1U << 13U;      // version 2
constexpr std::uint64_t truncate = 1U << 14U;   // version 3
constexpr std::uint64_t ioctl_dev = 1U << 15U;  // version 5
constexpr std::uint64_t bind_and_connect_tcp = 3;
constexpr std::uint64_t other_sockets_and_signals = 3;

constexpr std::uint64_t reading = execute | read_file | read_dir;
constexpr std::uint64_t writing =
    reading | write_file | remove_dir | remove_file | make_dir | make_reg | make_sym | refer | truncate;
constexpr std::uint64_t of_a_file = execute | write_file | read_file | truncate | ioctl_dev;

struct Attributes {
  std::uint64_t files = 0;
  std::uint64_t network = 0;
  std::uint64_t scoped = 0;
};

struct __attribute__((packed)) PathBeneath {
  std::uint64_t allowed;
  std::int32_t parent;
};

constexpr std::array system_folders = {"/usr",   "/opt",   "/bin",    "/sbin", "/lib",
                                       "/lib32", "/lib64", "/libx32", "/proc", "/sys/devices/system"};
constexpr std::array harmless_devices = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};

std::uint64_t known_by(int version) {
  std::uint64_t known = first_version;
  if (version >= 2) known |= refer;
  if (version >= 3) known |= truncate;
  if (version >= 5) known |= ioctl_dev;
  return known;
}

tl::unexpected<Error> failed(std::string_view what) {
  return fail(Outcome::environment_error,
              fmt::format("landlock cannot confine a process: {}: {}", what, std::generic_category().message(errno)),
              {"CUDA_AGENT_SANDBOX=none runs without"});
}

class Rules {
 public:
  Rules(util::Fd rules, std::uint64_t known) : m_rules(std::move(rules)), m_known(known) {}

  Result<void> allow(const fs::path& path, std::uint64_t access) {
    util::Fd const place(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!place) return {};
    struct stat facts {};
    if (::fstat(place.get(), &facts) != 0) return failed(path.string());
    access &= m_known;
    if (!S_ISDIR(facts.st_mode)) access &= of_a_file;
    PathBeneath const rule{access, place.get()};
    if (::syscall(add_rule_call, m_rules.get(), rule_path_beneath, &rule, 0U) != 0) return failed(path.string());
    return {};
  }

  /// All of a folder but what is in `hidden` or below it. Rules only add, so what lies beside that is named one by one.
  Result<void> allow_but(const fs::path& folder, const std::vector<fs::path>& hidden) {
    auto const holds_hidden = [&](const fs::path& path) {
      return std::any_of(hidden.begin(), hidden.end(), [&](const fs::path& one) {
        return std::mismatch(path.begin(), path.end(), one.begin(), one.end()).first == path.end();
      });
    };
    if (!holds_hidden(folder)) return allow(folder, reading);
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      if (std::find(hidden.begin(), hidden.end(), entry->path()) != hidden.end()) continue;
      if (auto done = allow_but(entry->path(), hidden); !done) return done;
    }
    return {};
  }

  util::Fd take() { return std::move(m_rules); }

 private:
  util::Fd m_rules;
  std::uint64_t m_known;
};

}  // namespace

bool drop_capabilities() noexcept {
  for (int one = 0; ::prctl(PR_CAPBSET_READ, one, 0, 0, 0) >= 0; ++one) {
    if (::prctl(PR_CAPBSET_DROP, one, 0, 0, 0) != 0 && errno != EPERM) return false;
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> const none{};
  return ::syscall(SYS_capset, &header, none.data()) == 0;
}

int landlock_version() noexcept {
  errno = 0;
  long const version = ::syscall(create_ruleset_call, nullptr, 0, version_flag);
  return version > 0 ? static_cast<int>(version) : 0;
}

Result<util::Fd> landlock_rules(const Confinement& confinement) {
  int const version = landlock_version();
  Attributes attributes{known_by(version), 0, 0};
  std::size_t size = sizeof attributes.files;
  if (version >= 4) {
    attributes.network = bind_and_connect_tcp;
    size += sizeof attributes.network;
  }
  if (version >= 6) {
    attributes.scoped = other_sockets_and_signals;
    size += sizeof attributes.scoped;
  }
  util::Fd created(static_cast<int>(::syscall(create_ruleset_call, &attributes, size, 0U)));
  if (!created) return failed("no rules can be made");
  Rules rules(std::move(created), attributes.files);
  auto const allow_all = [&rules](auto const& paths, std::uint64_t access) {
    Result<void> done;
    for (auto const& path : paths) {
      if (done) done = rules.allow(path, access);
    }
    return done;
  };
  auto done = allow_all(system_folders, reading);
  // Root's number stays root's, without any capability: what an ordinary user could not read is left out.
  if (done) done = rules.allow("/etc", read_dir);
  if (done) done = rules.allow_but("/etc", ::geteuid() == 0 ? private_places("/etc") : std::vector<fs::path>());
  if (done) done = allow_all(harmless_devices, read_file | write_file);
  if (done) done = allow_all(confinement.device_nodes, read_file | write_file | ioctl_dev);
  if (done) done = allow_all(confinement.read, reading);
  if (done) done = allow_all(confinement.write, writing);
  if (!done) return fail(done.error());
  return rules.take();
}

int confine_self(int rules) noexcept {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  if (::syscall(restrict_self_call, rules, 0U) != 0) return -1;
  return drop_capabilities() ? 0 : -1;
}

}  // namespace cuda_agent::exec
