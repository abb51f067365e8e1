#include "judge/device_state.hpp"

#include <cstdlib>

#include <spdlog/fmt/fmt.h>

namespace cuda_agent::judge {

std::vector<std::string> disturbances(const std::map<std::string, std::string>& facts) {
  std::vector<std::string> found;
  if (auto const all = facts.find("device.processes"); all != facts.end()) {
    constexpr int own = 3;  // the supervisor and its two workers; one that traces kernels has ended
    if (int const others = std::atoi(all->second.c_str()) - own; others > 0) {
      found.push_back(fmt::format("{} other programs have the GPU open", others));
    }
  }
  if (auto const reasons = facts.find("device.throttle_reasons"); reasons != facts.end()) {
    // Power cap, slowdown, software and hardware thermal limits, power brake (NVML's bits); not "idle".
    constexpr unsigned long long held_down = 0xEC;
    if ((std::strtoull(reasons->second.c_str(), nullptr, 16) & held_down) != 0) {
      found.push_back(fmt::format("the GPU's clock was held down while it was timed (reasons {})", reasons->second));
    }
  }
  return found;
}

}  // namespace cuda_agent::judge
