// A workspace on disk and the read-only snapshot that everything later works from.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda_agent/error.hpp"
#include "util/deadline.hpp"
#include "util/file_lock.hpp"

namespace cuda_agent::workspace {

struct Workspace {
  std::filesystem::path root;   ///< canonical
  std::filesystem::path state;  ///< root/.cuda-agent, created, writable
};

/// Errors: usage-like environment_error when the folder is missing or is no workspace (says which file is missing and
/// how `cuda-agent init` makes one), or when its state folder cannot be written (names the path and errno).
Result<Workspace> open_workspace(const std::filesystem::path& root);

/// What was copied: relative path → SHA-256 of the content.
struct Snapshot {
  std::filesystem::path root;  ///< read-only copy: model.py, model_new.py, kernels/…
  std::map<std::string, std::string> manifest;
  std::string task_sha256;        ///< over model.py; empty when there is none
  bool own_task_differs = false;  ///< the workspace has a model.py that is not the task's
  std::string candidate_sha256;   ///< over model_new.py and kernels/
};

struct SnapshotNeeds {
  bool model = true;      ///< model.py must be there
  bool model_new = true;  ///< model_new.py must be there
  /// model.py is taken from this folder, not from the workspace; empty: from the workspace.
  std::filesystem::path task = {};
};

/// What one snapshot may hold.
struct SnapshotLimits {
  std::size_t files = 4096;
  std::size_t bytes = std::size_t{64} << 20;
  int depth = 16;  ///< folders below kernels/
};

/// Copies model.py, model_new.py and kernels/ into `into`, which must not exist. Only regular files are taken, links
/// are never followed; names that begin with a dot and `__pycache__` are left out. Files get mode 0444, folders 0555:
/// remove them with `remove_tree`.
/// Errors: task_error (no model.py), compile_error (no model_new.py, no kernels/), policy_violation (a link, a special
/// file, a limit, an unprintable name), environment_error (cannot read or write).
Result<Snapshot> take_snapshot(const Workspace& workspace, const std::filesystem::path& into,
                               const SnapshotNeeds& needs, const SnapshotLimits& limits = {});

/// Removes a file or a folder with everything in it, read-only folders included; links are removed, not followed.
/// Nothing to remove is no error.
Result<void> remove_tree(const std::filesystem::path& path);

/// The folder for the scratch folders of asks. Call it while holding the lock: whatever an ask that died left there is
/// removed.
Result<std::filesystem::path> clean_scratch_parent(const Workspace& workspace);

/// Holds the workspace for one ask. When another process holds it, `waiting` is called once with a sentence that names
/// it (pid, command, since when); the wait ends at the deadline (timeout, fault environment) or on an interrupt.
class Lock {
 public:
  static Result<Lock> acquire(const Workspace& workspace, std::string_view command, util::Deadline deadline,
                              const std::function<void(const std::string& holder)>& waiting);

 private:
  explicit Lock(util::FileLock lock) : m_lock(std::move(lock)) {}
  util::FileLock m_lock;
};

/// What `clean` removes from the state folder.
struct CleanOptions {
  bool history = false;  ///< history.jsonl and last-verdict.json as well
};

/// Removes scratch folders, kept builds and the workspace's own cache. Returns what was there and is gone, relative to
/// the workspace.
Result<std::vector<std::string>> clean(const Workspace& workspace, CleanOptions options);

}  // namespace cuda_agent::workspace
