// What a sandboxed process may see. Applied by bubblewrap where that works; `probe_sandbox` finds out by trying.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cuda_agent/error.hpp"
#include "cuda_agent/verdict.hpp"
#include "util/deadline.hpp"

namespace cuda_agent::exec {

struct BindMount {
  std::filesystem::path source;  ///< on the host
  std::filesystem::path target;  ///< inside; empty = the same path
  bool writable = false;
  bool optional = false;  ///< silently left out when the source does not exist
};

/// The mounts of one sandbox. A system base (/usr, /etc, /opt, the links /bin /lib /lib64 /sbin, a fresh /proc, a
/// minimal /dev, private /tmp, no other home, no network) is always there; these are what comes on top. Mounts are made
/// in the order of their targets, so a bind under /tmp or under another bind works, in whatever order it is named.
struct SandboxPlan {
  std::vector<BindMount> binds;
  std::vector<std::filesystem::path> device_nodes;      ///< e.g. /dev/nvidia0
  std::filesystem::path home;                           ///< HOME inside, a private tmpfs; empty = /tmp/home
  std::uint64_t tmpfs_bytes = std::uint64_t{4} << 30U;  ///< limit of /tmp and of HOME, where bubblewrap can set one
};

/// How processes are confined on this host.
struct SandboxSupport {
  bool bubblewrap = false;  ///< a sandboxed `true` ran
  std::filesystem::path bubblewrap_path;
  std::string reason;       ///< why not, with what to do, when bubblewrap is false; and of landlock when that is 0
  bool tmpfs_size = false;  ///< this bubblewrap can limit the size of a tmpfs
  int landlock = 0;         ///< without bubblewrap: the version of landlock (confinement.hpp); 0: none
  bool seccomp = false;     ///< the kernel has seccomp filters
  /// As root: files and folders of /etc that an ordinary user could not read. Hidden.
  std::vector<std::filesystem::path> private_places;
  bool no_new_privs = true;
};

/// Tries once (and remembers for the life of the process) whether bubblewrap works here, for at most 5 s; PATH is
/// searched for bwrap. With CUDA_AGENT_SANDBOX=none in the environment nothing is tried and used, with =landlock
/// bubblewrap is not.
const SandboxSupport& probe_sandbox();

/// The lines for the verdict's `protections`. Without bubblewrap those of `resting_on_filter` hold as long as the
/// candidate's system-call filter does.
std::vector<Protection> protections(const SandboxSupport& support);

/// The names of those protections that rest on the candidate's system-call filter, too.
std::vector<std::string> resting_on_filter(const SandboxSupport& support);

/// The argv prefix that runs a command in `plan` (ends with "--"), with namespaces user, pid, net, ipc, uts, mount,
/// --die-with-parent and --new-session, cwd `cwd` inside.
std::vector<std::string> bubblewrap_argv(const SandboxSupport& support, const SandboxPlan& plan,
                                         const std::filesystem::path& cwd);

}  // namespace cuda_agent::exec
