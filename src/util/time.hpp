// Times for records.
#pragma once

#include <string>

namespace cuda_agent::util {

/// "2025-01-31T12:34:56Z".
std::string utc_now();

/// Seconds of the steady clock, which all processes of a machine share.
double steady_seconds();

}  // namespace cuda_agent::util
