#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fd.hpp"
#include "util/text.hpp"
#include "workspace/workspace.hpp"

namespace cuda_agent::workspace {

namespace fs = std::filesystem;

namespace {

std::string shown(const fs::path& path) { return util::escape_untrusted(path.string()); }

tl::unexpected<Error> cannot_write(const fs::path& path, int error) {
  auto const* const hint = error == ENOSPC ? "free some space on that file system and run the command again"
                                           : "make the workspace writable for this user, or copy it to a place that is";
  return fail(Outcome::environment_error,
              fmt::format("cannot write {}: {}; every ask keeps its scratch files and its history there", shown(path),
                          error == ENOSPC ? "disk full" : std::strerror(error)),
              {hint});
}

/// Permissions, quotas and read-only mounts all show only when something is written.
Result<void> try_writing(const fs::path& state) {
  auto const probe = state / fmt::format(".probe-{}", ::getpid());
  util::Fd const file(::open(probe.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file && errno != EEXIST) return cannot_write(state, errno);
  auto const written = file ? ::write(file.get(), "\n", 1) : 1;
  auto const error = errno;
  ::unlink(probe.c_str());
  if (written != 1) return cannot_write(state, error);
  return {};
}

Result<void> make_state(const fs::path& state) {
  auto const made = ::mkdir(state.c_str(), 0777) == 0;
  if (!made && errno != EEXIST) return cannot_write(state, errno);
  struct stat info {};
  if (::lstat(state.c_str(), &info) != 0) return cannot_write(state, errno);
  if (!S_ISDIR(info.st_mode)) {
    return fail(Outcome::environment_error,
                fmt::format("{} is {}, expected a folder of its own", shown(state),
                            S_ISLNK(info.st_mode) ? "a symbolic link" : "no folder"),
                {"remove it; the next command makes the folder"});
  }
  if (auto writable = try_writing(state); !writable) return writable;
  // A state folder that hides itself from git needs no line in anybody's .gitignore. Without it everything works.
  if (made) {
    util::Fd const ignore(::open((state / ".gitignore").c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
    if (ignore && ::write(ignore.get(), "*\n", 2) != 2) return {};
  }
  return {};
}

}  // namespace

Result<Workspace> open_workspace(const fs::path& root) {
  std::error_code error;
  auto const canonical = fs::canonical(root, error);
  if (error) {
    return fail(Outcome::environment_error, fmt::format("workspace {}: {}", shown(root), error.message()),
                {fmt::format("give the folder of a workspace, or make one: cuda-agent init {}", shown(root))});
  }
  if (!fs::is_directory(canonical, error)) {
    return fail(Outcome::environment_error, fmt::format("workspace {} is a file, expected a folder", shown(root)),
                {"give the folder that holds model_new.py and kernels/"});
  }
  auto const present = [&](const char* name) { return fs::exists(fs::symlink_status(canonical / name, error)); };
  if (!present("model.py") && !present("model_new.py") && !present("kernels")) {
    return fail(Outcome::environment_error,
                fmt::format("{} is no workspace: it has no model.py, no model_new.py and no kernels/", shown(root)),
                {fmt::format("make a workspace there: cuda-agent init {}", shown(root)),
                 "or name the folder of one: cuda-agent run FOLDER"});
  }
  Workspace workspace{canonical, canonical / ".cuda-agent"};
  if (auto made = make_state(workspace.state); !made) return fail(made.error());
  return workspace;
}

}  // namespace cuda_agent::workspace
