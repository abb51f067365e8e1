// Where compilers work: a folder with a copy of the sources, and an output folder a compiler, that nobody else sees.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "build/toolchain.hpp"
#include "cuda_agent/error.hpp"
#include "exec/child.hpp"
#include "util/files.hpp"

namespace cuda_agent::build {

/// One command's view of the disk. With bubblewrap a compiler sees the sources at /cuda-agent/source, its own output
/// folder, the system, the toolchain and the headers of Python and torch; no home and no model.py. Without it, it runs
/// on the same folders directly. Either way its working folder is the source folder, so that paths in messages,
/// dependency files and __FILE__ are relative to the workspace and the same everywhere.
class BuildRoom {
 public:
  /// Copies `snapshot`/kernels/ and the support files (given by path, copied beside kernels/) into a temporary folder
  /// in `parent`. Errors: environment_error.
  static Result<BuildRoom> make(const std::filesystem::path& parent, const std::filesystem::path& snapshot,
                                const std::vector<std::filesystem::path>& support, const Toolchain& toolchain,
                                const Interpreter& interpreter);

  std::filesystem::path source() const { return m_folder.path() / "source"; }
  /// The same folder, the working folder of all commands, as they see it.
  std::filesystem::path seen_source() const;
  /// A fresh output folder, named after its use. Errors: environment_error.
  Result<std::filesystem::path> make_output(const std::string& name) const;

  /// Additional folders to be seen at the given place inside (elsewhere: at their own place).
  struct Extra {
    std::filesystem::path folder;
    std::filesystem::path inside;
  };
  /// How `path`, in `folder`, is named inside.
  std::filesystem::path seen(const Extra& extra, const std::filesystem::path& file) const;
  /// The output folder as Extra.
  static Extra output_place(const std::filesystem::path& output);

  exec::Command command(std::vector<std::string> argv, const std::filesystem::path& output,
                        const std::vector<Extra>& extras) const;

 private:
  BuildRoom() = default;

  util::TemporaryFolder m_folder;
  bool m_sandboxed = false;
  std::vector<std::filesystem::path> m_tools;    // for PATH
  std::vector<std::filesystem::path> m_visible;  // folders outside the system's that compilers need
};

}  // namespace cuda_agent::build
