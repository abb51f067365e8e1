// Processors for the workers of one ask on the CPU. A worker that the scheduler moves between two calls finds its
// caches and translations on the other side: a model of one millisecond then takes one or two, by chance
// (docs/measured.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "util/file_lock.hpp"

namespace cuda_agent::judge {

class ProcessorClaim {
 public:
  /// As many as the models have threads, of those that this process may use and no other ask has claimed: asks that are
  /// timed at the same time, whoever's, do not meet on one as long as there are enough for all. None when there are too
  /// few, or just one in all, or their locks cannot be had: then the scheduler decides.
  static std::optional<ProcessorClaim> take(int threads);

  /// From now on all threads of the process run there alone. What cannot be moved stays where it is.
  void confine(pid_t process) const;

  /// The other way round: its threads run wherever this process may.
  static void let_go(pid_t process);

  const std::vector<int>& processors() const { return m_processors; }
  std::string in_words() const;  ///< "3,2"

 private:
  std::vector<int> m_processors;
  std::vector<util::FileLock> m_locks;
};

}  // namespace cuda_agent::judge
