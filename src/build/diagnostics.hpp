// The words of compilers, assemblers and linkers as Diagnostic values.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_agent/verdict.hpp"

namespace cuda_agent::build {

/// A line of a source file, 1-based; empty when there is none.
using SourceLine = std::function<std::string(const std::string& file, int line)>;

/// Reads the output of g++, clang, nvcc (cudafe++, cicc), ptxas, ld, lld and mold. Messages are escaped; paths are
/// as the tool printed them, less a leading "./" (compilers run with the build root as working folder, so that paths
/// of the workspace are relative already). Lines that are no diagnostic are left out. nvcc prints no column but a
/// caret; `source_line`, when given, serves to check that the caret can be trusted.
std::vector<Diagnostic> parse_diagnostics(std::string_view output, const SourceLine& source_line = {});

/// The first error, else nothing.
const Diagnostic* first_error(const std::vector<Diagnostic>& diagnostics);

/// "kernels/axpby.cu:4:10: identifier "x" is undefined"; `fallback` names the place when the diagnostic has none.
std::string describe(const Diagnostic& diagnostic, const std::string& fallback);

/// Why a tool failed for a reason that is not in the source: killed by the system, disk full. Empty when the source
/// is to blame. Only lines that the tools' drivers write themselves count, never text quoted from a source.
std::string environment_failure(std::string_view output);

}  // namespace cuda_agent::build
