// Finding what builds and runs a candidate: the user's Python with torch, the host compiler, nvcc.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cuda_agent/error.hpp"
#include "util/deadline.hpp"

namespace cuda_agent::build {

struct Cache;

/// Facts about a Python interpreter with torch, asked once of the un-isolated interpreter.
struct Interpreter {
  std::filesystem::path executable;  ///< absolute, not resolved (a venv's python must stay one)
  std::string python_version;        ///< "3.11.7"
  std::string extension_suffix;      ///< ".cpython-311-x86_64-linux-gnu.so"
  std::string torch_version;         ///< "2.11.0+cu130"
  std::string torch_cuda;            ///< "13.0", empty for a CPU build
  bool cxx11_abi = true;
  std::filesystem::path prefix;                     ///< sys.prefix
  std::filesystem::path base_prefix;                ///< sys.base_prefix
  std::filesystem::path torch_dir;                  ///< folder of the torch package
  std::vector<std::filesystem::path> include_dirs;  ///< Python's and torch's
  std::vector<std::filesystem::path> library_dirs;  ///< torch's lib, and the CUDA wheels' lib folders
  std::vector<std::filesystem::path> search_path;   ///< sys.path entries that exist (for -I workers)
};

/// `requested` (from --python) or, when empty: $CUDA_AGENT_PYTHON, ./.venv of the installation, $VIRTUAL_ENV, python3
/// on PATH. Errors: environment_error that says which interpreter was asked and what to install. The answer is kept in
/// `cache` (none given: the usual cache folder, where it can be written), since importing torch takes seconds.
Result<Interpreter> find_interpreter(const std::filesystem::path& requested, util::Deadline deadline,
                                     const Cache* cache = nullptr);

struct Compiler {
  std::filesystem::path executable;
  std::string identity;  ///< first line of --version, plus a hash of the file's size and mtime
  std::string version;
};

struct Toolchain {
  Compiler host;                    ///< CXX, else g++, else clang++ (from PATH)
  std::optional<Compiler> nvcc;     ///< $CUDA_HOME (or $CUDA_PATH) alone when set; else PATH, /usr/local/cuda
  std::filesystem::path cuda_home;  ///< folder above bin/nvcc; set whenever nvcc is there; else empty
  std::string linker;               ///< "mold", "lld" or "" for the default
};

/// nvcc is looked for only when `want_nvcc`. Errors: environment_error naming what is missing and how to get it.
Result<Toolchain> find_toolchain(bool want_nvcc, util::Deadline deadline);

}  // namespace cuda_agent::build
