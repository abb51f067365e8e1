#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fd.hpp"
#include "util/files.hpp"
#include "util/hash.hpp"
#include "util/text.hpp"
#include "workspace/workspace.hpp"

namespace cuda_agent::workspace {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view k_links_hint = "put a copy of the file there instead: links are never followed";

std::string shown(std::string_view name) { return util::escape_untrusted(name, 512); }

tl::unexpected<Error> refused(std::string_view name, std::string_view what, std::string hint) {
  return fail(Outcome::policy_violation, fmt::format("{} {}", shown(name), what), {std::move(hint)});
}

tl::unexpected<Error> host_failure(std::string_view verb, std::string_view name, int error) {
  std::vector<std::string> hints;
  if (error == EACCES) hints = {"make it readable for the user that runs cuda-agent"};
  if (error == ENOSPC) hints = {"free some space on the file system of the workspace"};
  return fail(Outcome::environment_error,
              fmt::format("cannot {} {}: {}", verb, shown(name), error == ENOSPC ? "disk full" : std::strerror(error)),
              std::move(hints));
}

/// The stream of entries owns its descriptor.
struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

/// Copies one tree. Every name is opened relative to its folder's descriptor and without following links, so that
/// what was checked is what is read, whatever happens to the workspace meanwhile.
class Copier {
 public:
  Copier(const fs::path& into, const SnapshotLimits& limits) : m_into(into), m_limits(limits) {}

  /// False when there is no such file.
  Result<bool> copy_file(int folder, const std::string& name, const std::string& relative) {
    util::Fd const file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file && errno == ENOENT) return false;
    if (!file && errno == ELOOP) return refused(relative, "is a symbolic link", std::string(k_links_hint));
    if (!file && errno != ENXIO) return host_failure("read", relative, errno);
    struct stat info {};
    if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return refused(relative, "is not a regular file", "only files and folders can be judged: remove it");
    }
    if (++m_files > m_limits.files) {
      return refused("kernels/", fmt::format("holds more than {} files", m_limits.files),
                     "keep only what the extension is built from");
    }
    auto content = read(file.get(), relative);
    if (!content) return fail(content.error());
    m_manifest[relative] = util::sha256_hex(*content);
    if (auto written = write(m_into / relative, *content); !written) return fail(written.error());
    return true;
  }

  /// False when there is no such folder.
  Result<bool> copy_folder(int parent, const std::string& name, const std::string& relative, int depth) {
    util::Fd folder(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!folder && errno == ENOENT) return false;
    if (!folder && (errno == ELOOP || errno == ENOTDIR)) return no_folder(parent, name, relative);
    if (!folder) return host_failure("read", relative, errno);
    if (depth > m_limits.depth) {
      return refused(relative, fmt::format("is more than {} folders deep", m_limits.depth), "move it further up");
    }
    auto names = entries(folder, relative);
    if (!names) return fail(names.error());
    if (::mkdir((m_into / relative).c_str(), 0700) != 0)
      return host_failure("make", (m_into / relative).string(), errno);
    for (auto const& entry : *names) {
      if (auto copied = copy_entry(folder.get(), entry, relative + "/" + entry, depth); !copied) return copied;
    }
    if (::chmod((m_into / relative).c_str(), 0555) != 0) return host_failure("seal", relative, errno);
    return true;
  }

  std::map<std::string, std::string>& manifest() { return m_manifest; }

 private:
  Result<bool> copy_entry(int folder, const std::string& name, const std::string& relative, int depth) {
    struct stat info {};
    if (::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode)) {
      return copy_folder(folder, name, relative, depth + 1);
    }
    return copy_file(folder, name, relative);
  }

  static tl::unexpected<Error> no_folder(int parent, const std::string& name, const std::string& relative) {
    struct stat info {};
    if (::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode)) {
      return refused(relative, "is a symbolic link", std::string(k_links_hint));
    }
    return refused(relative, "is a file, expected a folder", "make it a folder with the kernels' sources in it");
  }

  /// Sorted, so that the same content is always read in the same order.
  Result<std::vector<std::string>> entries(const util::Fd& folder, const std::string& relative) const {
    util::Fd copy(::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0));
    std::unique_ptr<DIR, CloseFolder> const stream(copy ? ::fdopendir(copy.get()) : nullptr);
    if (!stream) return host_failure("list", relative, errno);
    copy.release();
    std::vector<std::string> names;
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone
    while (auto const* const entry = ::readdir(stream.get())) {
      std::string const name(static_cast<const char*>(entry->d_name));
      if (name.front() == '.' || name == "__pycache__") continue;
      if (util::escape_untrusted(name) != name || name.find_first_of("\n\t") != std::string::npos) {
        return refused(relative + "/" + name, "has control characters in its name", "rename it");
      }
      // The count of files proper is kept while copying; this bounds what is held in memory before that.
      if (names.size() > m_limits.files) {
        return refused(relative, fmt::format("holds more than {} files", m_limits.files),
                       "keep only what the extension is built from");
      }
      names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<std::string> read(int file, const std::string& relative) {
    std::string content;
    std::array<char, 1 << 16> buffer;
    while (true) {
      auto const got = ::read(file, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return host_failure("read", relative, errno);
      if (got == 0) return content;
      m_bytes += static_cast<std::size_t>(got);
      if (m_bytes > m_limits.bytes) {
        return refused(relative,
                       fmt::format("brings the sources to more than {} bytes, the most that is judged", m_limits.bytes),
                       "keep data out of model.py, model_new.py and kernels/");
      }
      content.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

  static Result<void> write(const fs::path& path, const std::string& content) {
    util::Fd const file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return host_failure("write", path.string(), errno);
    std::size_t done = 0;
    while (done < content.size()) {
      auto const put = ::write(file.get(), content.data() + done, content.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return host_failure("write", path.string(), errno);
      done += static_cast<std::size_t>(put);
    }
    if (::fchmod(file.get(), 0444) != 0) return host_failure("seal", path.string(), errno);
    return {};
  }

  fs::path m_into;
  SnapshotLimits m_limits;
  std::map<std::string, std::string> m_manifest;
  std::size_t m_files = 0;
  std::size_t m_bytes = 0;
};

tl::unexpected<Error> no_model() {
  return fail(Outcome::task_error, "model.py is missing: the workspace has no task",
              {"model.py must define class Model(torch.nn.Module), get_inputs() and get_init_inputs()",
               "cuda-agent init --task FILE starts a workspace from a KernelBench-style file"});
}

tl::unexpected<Error> no_model_new() {
  return fail(Outcome::compile_error, "model_new.py is missing: there is no candidate to judge",
              {"model_new.py must define class ModelNew(torch.nn.Module) with the constructor and the forward of "
               "Model in model.py"});
}

tl::unexpected<Error> no_kernels() {
  return fail(
      Outcome::compile_error, "kernels/ is missing: there is nothing to build",
      {"kernels/ must hold the kernels (*.cu for CUDA, *_cpu.cpp for the CPU) and a *_binding.cpp that adds them "
       "to cuda_extension with REGISTER_BINDING"});
}

/// A link where model.py should be is the task's doing, not the candidate's.
Error as_task_error(Error error) {
  if (error.outcome != Outcome::policy_violation) return error;
  return {Outcome::task_error, std::move(error.message), std::move(error.hints), std::move(error.detail)};
}

/// Whether the workspace's file is there and another one. Only for a message: it is never used.
bool differs(const fs::path& own, const fs::path& used, const SnapshotLimits& limits) {
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(own, error))) return false;
  auto const theirs = util::read_file(own, limits.bytes);
  auto const ours = util::read_file(used, limits.bytes);
  return theirs && ours && *theirs != *ours;
}

std::string candidate_hash(const std::map<std::string, std::string>& manifest) {
  util::Sha256 hash;
  for (auto const& [path, sha256] : manifest) {
    if (path != "model.py") hash.update(path + '\n' + sha256 + '\n');
  }
  return hash.hex();
}

}  // namespace

Result<Snapshot> take_snapshot(const Workspace& workspace, const fs::path& into, const SnapshotNeeds& needs,
                               const SnapshotLimits& limits) {
  util::Fd const root(::open(workspace.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) return host_failure("read", workspace.root.string(), errno);
  if (::mkdir(into.c_str(), 0700) != 0) return host_failure("make", into.string(), errno);

  Copier copier(into, limits);
  util::Fd task;
  if (!needs.task.empty()) {
    task = util::Fd(::open(needs.task.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!task) return host_failure("read", needs.task.string(), errno);
  }
  auto const model = copier.copy_file(task ? task.get() : root.get(), "model.py", "model.py");
  if (!model) return fail(as_task_error(model.error()));
  if (!*model && task) {
    return fail(Outcome::task_error, fmt::format("{} has no model.py", needs.task.string()),
                {"--task names a folder with the model.py that the candidate is judged by"});
  }
  if (!*model && needs.model) return no_model();
  auto const model_new = copier.copy_file(root.get(), "model_new.py", "model_new.py");
  if (!model_new) return fail(model_new.error());
  if (!*model_new && needs.model_new) return no_model_new();
  auto const kernels = copier.copy_folder(root.get(), "kernels", "kernels", 0);
  if (!kernels) return fail(kernels.error());
  if (!*kernels) return no_kernels();
  if (::chmod(into.c_str(), 0555) != 0) return host_failure("seal", into.string(), errno);

  Snapshot snapshot;
  snapshot.root = into;
  snapshot.manifest = std::move(copier.manifest());
  if (*model) snapshot.task_sha256 = snapshot.manifest.at("model.py");
  if (task) snapshot.own_task_differs = differs(workspace.root / "model.py", snapshot.root / "model.py", limits);
  snapshot.candidate_sha256 = candidate_hash(snapshot.manifest);
  return snapshot;
}

}  // namespace cuda_agent::workspace
