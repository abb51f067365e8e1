// The comparison of device/compare.hpp for tensors in GPU memory.
#pragma once

#include "device/compare.hpp"
#include "device/cuda/gpu.hpp"

namespace cuda_agent::device {

/// Bytes in device memory.
struct DeviceBytes {
  const std::byte* base = nullptr;
  std::uint64_t bytes = 0;
};

Result<CompareResult> compare_on_gpu(const Gpu& gpu, DeviceBytes expected, const TensorLayout& expected_layout,
                                     DeviceBytes got, const TensorLayout& got_layout, const CompareOptions& options);

}  // namespace cuda_agent::device
