// Which files of kernels/ are compiled, and with what.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "build/extension.hpp"
#include "cuda_agent/error.hpp"

namespace cuda_agent::build {

/// Bytes of one source file.
inline constexpr std::size_t largest_source = 16U << 20U;

enum class SourceKind { cuda, host, binding };

struct SourceFile {
  std::string path;  ///< relative to the build root: "kernels/axpby.cu"
  SourceKind kind = SourceKind::host;
};

struct Sources {
  std::vector<SourceFile> compiled;  ///< in order of their paths
  std::vector<std::string> others;   ///< headers and what this target leaves out
};

/// Looks into `root`/kernels/ and its subfolders; links are not followed. Errors (compile_error): nothing to compile
/// for this target, or nothing that calls REGISTER_BINDING.
Result<Sources> select_sources(const std::filesystem::path& root, Target target);

/// C and C++ comments replaced by spaces; text in quotes stays.
std::string without_comments(const std::string& text);

}  // namespace cuda_agent::build
