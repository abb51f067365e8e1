// Wall-clock time for records.
#pragma once

#include <string>

namespace cuda_agent::util {

/// "2025-01-31T12:34:56Z".
std::string utc_now();

}  // namespace cuda_agent::util
