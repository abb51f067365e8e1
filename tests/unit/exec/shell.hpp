// A command that runs a shell script, for the tests.
#pragma once

#include <filesystem>
#include <string>

#include <unistd.h>

#include "exec/child.hpp"
#include "util/files.hpp"

namespace cuda_agent::exec {

inline Command shell(const std::string& script) {
  Command command;
  command.argv = {"/bin/sh", "-c", script};
  command.env = {{"PATH", "/usr/local/bin:/usr/bin:/bin"}, {"LC_ALL", "C"}};
  return command;
}

inline util::Deadline soon() { return util::Deadline::after(std::chrono::seconds(60)); }

/// Whether a process (that is not a zombie) has `text` in its command line.
inline bool somebody_runs(const std::string& text) {
  std::error_code error;
  for (auto const& entry : std::filesystem::directory_iterator("/proc", error)) {
    auto const line = util::read_file(entry.path() / "cmdline", 1 << 20);
    if (line && line->find(text) != std::string::npos) return true;
  }
  return false;
}

/// A span for `sleep` that no other process on this machine sleeps for.
inline std::string own_sleep() { return "86400." + std::to_string(::getpid()) + "7"; }

}  // namespace cuda_agent::exec
