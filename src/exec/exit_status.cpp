#include "exec/exit_status.hpp"

#include <cstring>

#include <spdlog/fmt/fmt.h>

namespace cuda_agent::exec {

ExitStatus exit_status(const siginfo_t& info, bool from_bubblewrap) {
  ExitStatus status;
  if (info.si_code != CLD_EXITED) {
    status.signal = info.si_status;
  } else if (from_bubblewrap && info.si_status > 128 && info.si_status < 128 + NSIG) {
    status.signal = info.si_status - 128;
  } else {
    status.code = info.si_status;
  }
  return status;
}

std::string ExitStatus::describe() const {
  if (signal == 0) return fmt::format("exit code {}", code);
  const char* const name = ::sigabbrev_np(signal);
  if (name == nullptr) return fmt::format("killed by signal {}", signal);
  return fmt::format("killed by signal {} (SIG{})", signal, name);
}

}  // namespace cuda_agent::exec
