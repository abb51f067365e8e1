// What a worker gives up once it is ready, for good and in all of its threads: opening device nodes, starting
// processes or threads. Needs neither torch nor Python.
#pragma once

#include <string>
#include <vector>

namespace worker {

struct SealReport {
  bool filter = false;           ///< the system-call filter holds in every thread
  bool devices = false;          ///< no thread can open an NVIDIA device node any more
  std::vector<std::string> why;  ///< one line for each of the two that does not hold
  int threads = 0;               ///< of this process
};

/// Puts `filter`, an array of struct sock_filter, on all threads, and with `devices` forbids all of them by landlock to
/// open the nodes in /dev whose names begin with "nvidia". Descriptors that are open stay so: a CUDA context goes on
/// working, and a second one cannot be made.
SealReport seal(const std::string& filter, bool devices);

/// From now on other processes of the same user cannot read this one's memory, environment and descriptors.
void hide();

}  // namespace worker
