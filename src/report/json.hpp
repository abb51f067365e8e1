// The verdict for programs.
#pragma once

#include <string>

#include "cuda_agent/verdict.hpp"

namespace cuda_agent::report {

/// One JSON object on one line, without an end of line. Always valid UTF-8.
std::string render_json(const Verdict& verdict);

}  // namespace cuda_agent::report
