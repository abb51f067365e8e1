// One timed call on the GPU (docs/architecture.md): held by a gate that fills the device until everything is enqueued.
#pragma once

#include "device/backend.hpp"
#include "device/cuda/gpu.hpp"

namespace cuda_agent::device {

Result<CallResult> timed_call(const Gpu& gpu, Peer& peer, const TimedCall& call);

}  // namespace cuda_agent::device
