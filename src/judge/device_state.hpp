// What the state of a device says of times that were measured on it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cuda_agent::judge {

/// Sentences for the verdict's `speed.disturbed`, from the device's facts as they are when it has just worked: other
/// programs that have it open, a clock that was held down.
std::vector<std::string> disturbances(const std::map<std::string, std::string>& facts);

}  // namespace cuda_agent::judge
