// A workspace on disk and the read-only snapshot that everything later works from.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "cuda_agent/error.hpp"

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
  std::filesystem::path root;                    ///< read-only copy: model.py, model_new.py, kernels/…
  std::map<std::string, std::string> manifest;
  std::string task_sha256;                       ///< over model.py
  std::string candidate_sha256;                  ///< over model_new.py and kernels/
};

/// Limits: 4,096 files, 64 MiB in all, regular files only, no link out of the workspace.
/// `into` must not exist. Errors: task_error (no model.py), compile_error with fault candidate (no model_new.py …).
struct SnapshotNeeds {
  bool model = true;      ///< model.py must be there
  bool model_new = true;  ///< model_new.py must be there
};
Result<Snapshot> take_snapshot(const Workspace& workspace, const std::filesystem::path& into, SnapshotNeeds needs);

/// Holds the workspace for one ask. When another process holds it, `waiting` is called once with a sentence that names
/// it (pid, command, since when); the wait ends at the deadline (timeout, fault environment) or on an interrupt.
class Lock;

}  // namespace cuda_agent::workspace
