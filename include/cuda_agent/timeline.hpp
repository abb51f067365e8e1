// What an ask did when.
#pragma once

#include <string>
#include <vector>

namespace cuda_agent {

struct TimelineSpan {
  std::string what;
  std::string lane;  ///< "ask": one after the other, and what the answer waits for; "client", "build", "rules",
                     ///< "workers", "rounds", "session": what went on meanwhile
  double start = 0;  ///< seconds of the steady clock, which all processes of a machine share
  double seconds = 0;
};

using Timeline = std::vector<TimelineSpan>;

}  // namespace cuda_agent
