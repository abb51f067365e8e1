// Commands of a shell, and FIFOs by which they wait for each other: opening one waits for its other end.
#pragma once

#include <filesystem>
#include <string>

#include <sys/stat.h>

#include "exec/child.hpp"
#include "util/files.hpp"

namespace cuda_agent::build::test {

inline exec::Command shell(const std::string& script) {
  exec::Command command;
  command.argv = {"/bin/sh", "-c", script};
  command.env = {{"PATH", "/usr/bin:/bin"}};
  return command;
}

class Fifo {
 public:
  Fifo() : m_folder(*util::TemporaryFolder::make(std::filesystem::temp_directory_path(), "cuda-agent-fifo-")) {
    ::mkfifo(path().c_str(), 0600);
  }
  std::string path() const { return (m_folder.path() / "fifo").string(); }

 private:
  util::TemporaryFolder m_folder;
};

}  // namespace cuda_agent::build::test
