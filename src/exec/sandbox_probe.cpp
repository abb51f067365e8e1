#include <cerrno>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include <linux/seccomp.h>
#include <spdlog/fmt/fmt.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "exec/child.hpp"
#include "exec/root_access.hpp"
#include "exec/sandbox.hpp"
#include "util/environment.hpp"
#include "util/text.hpp"

namespace cuda_agent::exec {

namespace fs = std::filesystem;

namespace {

constexpr double c_patience = 5;  // seconds

bool kernel_has_seccomp_filters() {
  // A null filter is refused with EFAULT by a kernel that would look at it, with EINVAL by one without filters.
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr, 0, 0) != 0 && errno == EFAULT;
}

std::optional<long> kernel_setting(const fs::path& file) {
  std::ifstream stream(file);
  long value = 0;
  if (!(stream >> value)) return std::nullopt;
  return value;
}

// What keeps user namespaces from being made here, as far as the kernel's settings tell.
std::string advice(const std::string& words) {
  if (kernel_setting("/proc/sys/kernel/unprivileged_userns_clone") == 0) {
    return "user namespaces are forbidden: sysctl -w kernel.unprivileged_userns_clone=1";
  }
  if (kernel_setting("/proc/sys/user/max_user_namespaces") == 0) {
    return "user namespaces are forbidden: sysctl -w user.max_user_namespaces=10000";
  }
  if (kernel_setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1) {
    return "AppArmor restricts user namespaces: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give "
           "bwrap an AppArmor profile with `userns`";
  }
  if (words.find("mount proc") != std::string::npos) {
    return "in Docker or Podman: start the container with --security-opt systempaths=unconfined";
  }
  return "in Docker: start the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
         "--security-opt systempaths=unconfined";
}

Result<Completed> try_out(std::vector<std::string> argv) {
  Command command;
  command.argv = std::move(argv);
  command.env = {{"PATH", "/usr/bin:/bin"}, {"LC_ALL", "C"}};
  return run(command, util::Deadline::after(std::chrono::duration<double>(c_patience)));
}

bool can_limit_tmpfs(const fs::path& bubblewrap) {
  auto const help = try_out({bubblewrap.string(), "--help"});
  return help && help->output.find("--size BYTES") != std::string::npos;
}

/// What confines without bubblewrap, and where nothing does, why not.
void look_for_landlock(SandboxSupport& support) {
  support.landlock = landlock_version();
  if (support.landlock > 0 || support.bubblewrap) return;
  support.reason += fmt::format(
      "; and there is no landlock ({}): Linux 5.13 or newer has it, where the boot parameter "
      "lsm= names it",
      std::generic_category().message(errno));
}

void try_bubblewrap(SandboxSupport& support) {
  auto const bubblewrap = util::find_executable("bwrap");
  if (!bubblewrap) {
    support.reason = "bubblewrap is not installed (no bwrap on PATH): apt-get install bubblewrap";
    return;
  }
  support.bubblewrap_path = *bubblewrap;
  support.tmpfs_size = can_limit_tmpfs(*bubblewrap);

  auto argv = bubblewrap_argv(support, {}, "/");
  argv.emplace_back("/usr/bin/true");
  auto const tried = try_out(std::move(argv));
  if (!tried) {
    support.reason = fmt::format("bubblewrap does not work here: {}", tried.error().message);
  } else if (!tried->status.ok()) {
    std::string const words = util::escape_untrusted(util::trim(tried->output), 400);
    support.reason = fmt::format("bubblewrap does not work here ({}); {}", words, advice(words));
  } else {
    support.bubblewrap = true;
  }
}

SandboxSupport probe() {
  SandboxSupport support;
  support.seccomp = kernel_has_seccomp_filters();
  if (::geteuid() == 0) support.private_places = private_places("/etc");
  auto const asked = util::get_env("CUDA_AGENT_SANDBOX");
  if (asked == "none") {
    support.reason = "switched off by CUDA_AGENT_SANDBOX=none in the environment";
    return support;
  }
  if (asked == "landlock") {
    support.reason = "bubblewrap is switched off by CUDA_AGENT_SANDBOX=landlock in the environment";
  } else {
    try_bubblewrap(support);
  }
  look_for_landlock(support);
  return support;
}

}  // namespace

const SandboxSupport& probe_sandbox() {
  static SandboxSupport const support = probe();
  return support;
}

}  // namespace cuda_agent::exec
