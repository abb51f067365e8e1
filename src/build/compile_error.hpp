// What the failure of a compiler or linker means: whose fault it is, and what to say.
#pragma once

#include <string>
#include <vector>

#include "build/jobs.hpp"
#include "cuda_agent/error.hpp"
#include "cuda_agent/verdict.hpp"

namespace cuda_agent::build {

struct ToolFailure {
  std::string source;        ///< "kernels/axpby.cu", or "cuda_extension" for the link
  std::string tool;          ///< "nvcc", "host", "link"
  double timeout = 0;        ///< seconds the tool was allowed
  bool is_candidate = true;  ///< false for the judge's own files: then the installation is at fault
};

/// compile_error (candidate), timeout (candidate), environment_error (killed, disk full, cannot start, the judge's own
/// file) or interrupted. The detail is the tool's output, escaped.
Error explain_failure(const ToolFailure& failure, const JobOutcome& outcome,
                      const std::vector<Diagnostic>& diagnostics);

}  // namespace cuda_agent::build
