#include "util/fd.hpp"

#include <unistd.h>

namespace cuda_agent::util {

void Fd::reset() noexcept {
  // No retry on EINTR: on Linux the descriptor is gone by then, and the number may already be another's.
  if (m_fd >= 0) ::close(m_fd);
  m_fd = -1;
}

}  // namespace cuda_agent::util
