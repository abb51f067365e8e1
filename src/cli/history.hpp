// What an ask leaves behind in the workspace, so that no answer is lost.
#pragma once

#include <string>

#include "cuda_agent/error.hpp"
#include "workspace/workspace.hpp"

namespace cuda_agent::cli {

/// Appends the verdict (JSON without an end of line) as one line to .cuda-agent/history.jsonl and writes it whole to
/// .cuda-agent/last-verdict.json. Errors: environment_error (the verdict itself stands).
Result<void> record(const workspace::Workspace& workspace, const std::string& json);

}  // namespace cuda_agent::cli
