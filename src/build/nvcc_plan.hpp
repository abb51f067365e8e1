// The steps of `nvcc -c`, read from what `nvcc --dryrun` prints.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cuda_agent::build {

/// In the order in which nvcc runs them.
enum class NvccStep { preprocess_device, preprocess_host, cudafe, cicc, ptxas, fatbinary, compile_host };
inline constexpr std::size_t nvcc_steps = 7;

/// A word of a command: its text, and where a file's name belongs behind that.
struct PlannedWord {
  enum class File { none, source, source_path, object, temporary, temporary_name };
  std::string text;
  File file = File::none;
  std::string number;  ///< of a temporary file: nvcc numbers them, since several may have one suffix
  std::string suffix;  ///< of a temporary file: "cudafe1.cpp"
};

/// Where the files of one compilation are, as its tools see them.
struct NvccNames {
  std::string source;             ///< as given to nvcc: "kernels/axpby.cu"
  std::filesystem::path cwd;      ///< what `source` is relative to
  std::filesystem::path object;   ///< the result
  std::filesystem::path scratch;  ///< a folder for temporary files, of this compilation alone
};

struct NvccPlan {
  std::array<std::vector<PlannedWord>, nvcc_steps> commands;  ///< the first word is the tool's absolute path
  std::map<std::string, std::string> environment;             ///< what nvcc sets for its tools, PATH excepted
  std::vector<std::filesystem::path> tool_folders;            ///< what nvcc puts in front of PATH

  std::vector<std::string> argv(NvccStep step, const NvccNames& names) const;
  /// The file that a step writes by this option ("-o"), or that an option of this form names; empty when it has none.
  std::string value(NvccStep step, const std::string& option, const NvccNames& names) const;
};

/// What was asked of nvcc, to recognise it in the answer: -MD -MF `scratch`/dependencies.d -c `source` -o `object`,
/// with TMPDIR = `scratch`.
struct DryRun {
  std::string text;
  NvccNames names;
  std::filesystem::path host_compiler;
  std::filesystem::path nvcc;
};

constexpr std::size_t longest_dry_run = 1U << 20U;  ///< bytes of its text

struct Understood {
  std::optional<NvccPlan> plan;
  std::string why_not;  ///< for a log
};

/// All or nothing: every line must be one that nvcc 13 prints for one source and one architecture, every tool the host
/// compiler or one of nvcc's toolkit, and every file written a temporary one in the scratch folder or the object.
Understood understand(const DryRun& dry_run);

}  // namespace cuda_agent::build
