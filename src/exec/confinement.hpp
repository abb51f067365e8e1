// What confines a process where bubblewrap does not work: landlock (Linux 5.13 and newer) and no capabilities. Paths
// are where they are; everything else is out of reach.
#pragma once

#include <filesystem>
#include <vector>

#include "cuda_agent/error.hpp"
#include "util/fd.hpp"

namespace cuda_agent::exec {

/// What a confined process may use, beside the system's folders (read-only), /proc and the harmless devices. Places
/// that do not exist are left out.
struct Confinement {
  std::vector<std::filesystem::path> read;          ///< and execute
  std::vector<std::filesystem::path> write;         ///< folders
  std::vector<std::filesystem::path> device_nodes;  ///< e.g. /dev/nvidia0
};

/// The version of landlock's interface: 1 files, 4 TCP, 5 devices, 6 signals to and abstract sockets of others. 0: the
/// kernel has none, and errno says why.
int landlock_version() noexcept;

/// The rules, to be put on a child between fork and exec. Errors: environment_error.
Result<util::Fd> landlock_rules(const Confinement& confinement);

/// Also as root: no capabilities, and none to be had again. Async-signal-safe.
bool drop_capabilities() noexcept;

/// Async-signal-safe; 0 or -1 with errno. From here on the rules hold for this process and all that it starts, and it
/// has no capabilities, also as root.
int confine_self(int rules) noexcept;

}  // namespace cuda_agent::exec
