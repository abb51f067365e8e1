// Compiled objects by content. Two levels, as in ccache: a manifest, found by source and flags, lists for each object
// which files were read and what was in them; the first entry whose files are unchanged names the object. So an
// edited header is noticed although only the compiler knows who includes it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "build/extension.hpp"
#include "cuda_agent/error.hpp"
#include "cuda_agent/verdict.hpp"

namespace cuda_agent::build {

/// What is kept beside an object, to be shown again when it is found.
struct ObjectRecord {
  std::vector<Diagnostic> diagnostics;
  std::vector<KernelResources> kernels;
  double seconds = 0;  ///< what compiling took
  std::string sha256;  ///< of the object file
};

struct StoredObject {
  std::filesystem::path file;
  ObjectRecord record;
};

/// What identifies the content of files that were read. Files below `root` (given by relative paths) count by
/// SHA-256; all others, the system's and torch's headers, by size and time of change. Answers are remembered, so that
/// many objects can share the cost of looking.
class FileStates {
 public:
  explicit FileStates(std::filesystem::path root) : m_root(std::move(root)) {}
  /// Empty when the file cannot be read.
  const std::string& of(const std::string& path);

 private:
  std::filesystem::path m_root;
  std::map<std::string, std::string> m_known;
};

class ObjectStore {
 public:
  explicit ObjectStore(const Cache& cache) : m_root(cache.root) {}

  /// `key` is the hash of source, flags, compiler and everything else that is known before compiling. Damaged or
  /// incomplete entries count as not there.
  std::optional<StoredObject> find(const std::string& key, FileStates& files) const;

  /// Copies `object` in. `dependencies` are paths as the compiler printed them.
  /// Errors: environment_error (disk full, read-only).
  Result<StoredObject> put(const std::string& key, const std::vector<std::string>& dependencies, FileStates& files,
                           const std::filesystem::path& object, ObjectRecord record) const;

  /// A file that is found by its key alone (linked extensions, answers of tools).
  std::filesystem::path place(const std::string& kind, const std::string& key, const std::string& suffix) const;

 private:
  std::filesystem::path m_root;
};

/// Copies into place atomically: never a half-written file under `to`. Errors: environment_error.
Result<void> copy_into_place(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace cuda_agent::build
