// Which torch operators a model calls, as torch's own recorder tells. It runs in the process of the judged code, so
// what it has not seen proves nothing; what it has seen was called.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace worker {

/// From now on operators are counted while a model is called. Once for the process.
void start_witness();

/// While one lives, this thread calls the model.
class Watching {
 public:
  Watching();
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;
  ~Watching();
};

struct Witnessed {
  std::map<std::string, std::int64_t>
      operators;        ///< calls of each so far; those that another one makes are not counted
  bool intact = false;  ///< an operator called just now was seen: nobody has taken the recorder away
};
Witnessed witnessed();

}  // namespace worker
