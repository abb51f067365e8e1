#include "exec/sandbox.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include <spdlog/fmt/fmt.h>

namespace cuda_agent::exec {

namespace fs = std::filesystem;

namespace {

using Arguments = std::vector<std::string>;

struct Mount {
  fs::path target;
  Arguments arguments;
};

void append(Arguments& to, const Arguments& more) { to.insert(to.end(), more.begin(), more.end()); }

Mount bind(const std::string& option, const fs::path& source, const fs::path& target) {
  return {target, {option, source.string(), target.string()}};
}

Mount tmpfs(const SandboxSupport& support, const SandboxPlan& plan, const fs::path& target) {
  Mount mount{target, {}};
  if (support.tmpfs_size) mount.arguments = {"--size", std::to_string(plan.tmpfs_bytes)};
  append(mount.arguments, {"--tmpfs", target.string()});
  return mount;
}

bool is_under(const fs::path& path, const fs::path& folder) {
  auto const [in_folder, in_path] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return in_folder == folder.end();
}

// On a merged /usr these are links, and a link in the sandbox must be relative: "/usr" means another place while
// bubblewrap sets it up.
void add_system_folder(std::vector<Mount>& mounts, const fs::path& folder) {
  std::error_code error;
  if (fs::is_symlink(folder, error)) {
    fs::path const target = fs::read_symlink(folder, error);
    mounts.push_back({folder, {"--symlink", target.relative_path().string(), folder.string()}});
  } else if (fs::is_directory(folder, error)) {
    mounts.push_back(bind("--ro-bind", folder, folder));
  }
}

std::vector<Mount> system_base() {
  std::vector<Mount> mounts;
  for (const char* const folder : {"/usr", "/etc", "/opt", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    add_system_folder(mounts, folder);
  }
  // The processors and memory nodes, which numerical libraries ask for.
  mounts.push_back(bind("--ro-bind-try", "/sys/devices/system", "/sys/devices/system"));
  mounts.push_back({"/proc", {"--proc", "/proc"}});
  mounts.push_back({"/dev", {"--dev", "/dev"}});
  return mounts;
}

// Nothing can be read there: a device node on a mount without devices, an empty folder.
void hide_private_places(std::vector<Mount>& mounts, const SandboxSupport& support) {
  std::error_code error;
  for (auto const& place : support.private_places) {
    if (fs::is_directory(fs::symlink_status(place, error))) {
      mounts.push_back({place, {"--tmpfs", place.string(), "--remount-ro", place.string()}});
    } else {
      mounts.push_back(bind("--ro-bind", "/dev/null", place));
    }
  }
}

fs::path home_of(const SandboxPlan& plan) { return plan.home.empty() ? fs::path("/tmp/home") : plan.home; }

void add_private_folders(std::vector<Mount>& mounts, const SandboxSupport& support, const SandboxPlan& plan) {
  mounts.push_back(tmpfs(support, plan, "/tmp"));
  mounts.push_back(tmpfs(support, plan, "/dev/shm"));
  fs::path const home = home_of(plan);
  if (is_under(home, "/tmp")) {
    mounts.push_back({home, {"--dir", home.string()}});
  } else {
    mounts.push_back(tmpfs(support, plan, home));
  }
}

void add_plan(std::vector<Mount>& mounts, const SandboxPlan& plan) {
  for (auto const& node : plan.device_nodes) mounts.push_back(bind("--dev-bind", node, node));
  for (auto const& bound : plan.binds) {
    std::error_code error;
    if (bound.optional && !fs::exists(bound.source, error)) continue;
    fs::path const& target = bound.target.empty() ? bound.source : bound.target;
    mounts.push_back(bind(bound.writable ? "--bind" : "--ro-bind", bound.source, target.lexically_normal()));
  }
}

}  // namespace

Arguments bubblewrap_argv(const SandboxSupport& support, const SandboxPlan& plan, const fs::path& cwd) {
  Arguments argv{support.bubblewrap_path.string(), "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc",
                 "--unshare-uts", "--die-with-parent", "--new-session",
                 // Started by root, bubblewrap keeps root's capabilities unless told.
                 "--cap-drop", "ALL", "--hostname", "cuda-agent"};

  std::vector<Mount> mounts = system_base();
  hide_private_places(mounts, support);
  add_private_folders(mounts, support, plan);
  add_plan(mounts, plan);
  // A folder before what lies in it, or it would hide it. Of two for one place the later named wins.
  std::stable_sort(mounts.begin(), mounts.end(), [](const Mount& a, const Mount& b) { return a.target < b.target; });
  for (auto const& mount : mounts) append(argv, mount.arguments);

  // Both are a tmpfs without a limit; all mount points are made by now.
  append(argv, {"--remount-ro", "/dev", "--remount-ro", "/"});
  // The kernel's settings below /proc/sys can be written by root's number, without any capability.
  append(argv, {"--remount-ro", "/proc"});
  append(argv, {"--setenv", "HOME", home_of(plan).string()});
  append(argv, {"--chdir", cwd.empty() ? "/" : cwd.string(), "--"});
  return argv;
}

std::vector<Protection> protections(const SandboxSupport& support) {
  constexpr int with_tcp = 4;
  auto const by_bubblewrap = [&support](std::string name, const std::string& what) {
    return Protection{std::move(name), support.bubblewrap, support.bubblewrap ? what : support.reason};
  };
  Protection files = by_bubblewrap(
      "file system", "read-only system, private /tmp and HOME, no other home; only bound folders are seen");
  Protection network = by_bubblewrap("network", "none: an empty network namespace");
  Protection processes = by_bubblewrap("other processes", "not visible: a pid namespace");
  if (!support.bubblewrap && support.landlock > 0) {
    files = {"file system", true,
             fmt::format("landlock {}: system and interpreter read-only, no other folder, nothing to write to for a "
                         "candidate",
                         support.landlock)};
    if (support.landlock >= with_tcp && support.seccomp) {
      network = {"network", true, "landlock: no TCP; the candidate's system-call filter: no sockets"};
    }
    if (support.seccomp) {
      processes = {"other processes", true,
                   "landlock: visible by number, not readable; the candidate's system-call filter: no signals, no "
                   "limits and no priorities of others"};
    }
  }
  return {
      by_bubblewrap("namespaces", "bubblewrap: user, pid, net, ipc, uts and mount namespaces"),
      std::move(files),
      std::move(network),
      std::move(processes),
      {"capabilities", true, "none, whoever runs the judge"},
      {"no_new_privs", support.no_new_privs, "set before the command is executed"},
      {"resource limits", true, "core dumps, and memory, file size and processor time where the command names them"},
      {"inherited descriptors", true, "closed, but for those that the command names"},
      {"process tree", true, "killed as a whole: pid namespace or subreaper"},
  };
}

std::vector<std::string> resting_on_filter(const SandboxSupport& support) {
  if (support.bubblewrap) return {};
  return {"network", "other processes"};
}

}  // namespace cuda_agent::exec
