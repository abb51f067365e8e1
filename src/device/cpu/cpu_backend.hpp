// The CPU twin of the judge's device: shared host memory, and a clock that runs from call to answer.
#pragma once

#include <memory>

#include "device/backend.hpp"

namespace cuda_agent::device {

std::unique_ptr<Backend> make_cpu_backend();

}  // namespace cuda_agent::device
