// Kernels of the probe's worker: work that takes a while, and what tries to get past the gate.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace probe {

/// Counts in *escaped when it runs while the word at `go` is still zero.
void launch_stray(const std::uint64_t* go, std::uint32_t* escaped, cudaStream_t stream);

/// Takes so many clock cycles on one SM, then writes `value` to all `words` of `output`.
void launch_work(long long cycles, std::uint32_t* output, std::uint32_t words, std::uint32_t value,
                 cudaStream_t stream);

/// output[i] = input[i] + 1.
void launch_increment(const std::uint32_t* input, std::uint32_t* output, std::uint32_t words, cudaStream_t stream);

/// Writes `value` to the word at `place`, `times` times.
void launch_write(std::uint64_t* place, std::uint64_t value, int times, cudaStream_t stream);

/// Adds one to the word at `place`, `times` times.
void launch_beat(std::uint64_t* place, int times, cudaStream_t stream);

}  // namespace probe
