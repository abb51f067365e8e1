// Whatever descends from this process: who it is, and that nothing of it escapes.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include <sys/types.h>

#include "util/deadline.hpp"

namespace cuda_agent::exec {

/// Makes this process the one that orphaned descendants are handed to. Once is enough.
void become_subreaper();

/// The children that spawn() started and that are not reaped yet. A process is in here or an orphan handed to us, so
/// the lock is held from before fork until the new child is in.
class LivingChildren {
 public:
  static LivingChildren& instance();

  std::unique_lock<std::mutex> lock() { return std::unique_lock(m_mutex); }
  /// Under lock().
  void add(pid_t pid) { m_pids.push_back(pid); }
  /// Takes the lock.
  void remove(pid_t pid);
  /// Under lock().
  bool has(pid_t pid) const;

 private:
  std::mutex m_mutex;
  std::vector<pid_t> m_pids;
};

/// SIGKILL to `pid`, its process group (when it leads one) and everything under it that is there now.
void kill_tree(pid_t pid);

/// Kills and reaps the orphans that were handed to us, with everything under them: those of `ended`'s session, and
/// those that left the session that they were started in. Not touched are orphans in a living child's session and
/// processes of our own session. `ended` is still unreaped, so that its number cannot be another's. False when some
/// were still there at the deadline.
bool sweep_orphans(pid_t ended, util::Deadline deadline);

/// The names of the orphans that were handed to us and are still running: what children of spawn() that have ended, and
/// were not polled since, left behind.
std::vector<std::string> running_orphans();

/// Waits until `pid`, a child of ours, has ended (it stays unreaped). False at the deadline.
bool wait_for_end(pid_t pid, util::Deadline deadline);

/// The kernel's letter for what a process does ('R', 'S', 'T' stopped, 'Z', …); 'X' when there is none.
char state_of(pid_t pid);

/// A pidfd, or nothing on kernels without.
int open_pidfd(pid_t pid) noexcept;

}  // namespace cuda_agent::exec
