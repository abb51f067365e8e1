// The page of counters that the supervisor and a CUDA worker share: the gate of a timed call. Read by the supervisor
// too, which takes nothing in it for true that it does not check by other means.
#pragma once

#include <cstdint>

namespace worker {

/// Each counter has a cache line of its own. The kernels of cuda_gate.cpp know these offsets.
struct ControlPage {
  alignas(128) std::uint64_t go;        ///< the supervisor's: the ticket of the call that may start
  alignas(128) std::uint64_t resident;  ///< the gate's: the ticket of the call whose gate fills the device
  alignas(128) std::uint64_t beat;      ///< the gate's: grows while it waits
  alignas(128) std::uint64_t done1;     ///< the nonce, once the model's last kernel has ended
  alignas(128) std::uint64_t done2;     ///< the nonce, once the results are stored
};

inline constexpr std::uint64_t control_bytes = 4096;
static_assert(sizeof(ControlPage) <= control_bytes);

}  // namespace worker
