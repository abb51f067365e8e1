#include <cstdint>

#include <cub/device/device_scan.cuh>
#include <cuda_runtime.h>
#include <thrust/iterator/transform_iterator.h>

/// A scan that keeps every value as it is.
struct Last {
  __device__ float operator()(float, float b) const { return b; }
};

struct Step {
  int times;
  __device__ float operator()(float x) const {
    float y = x;
    for (int k = 0; k < times; ++k) y = sinf(y) + x;
    return y;
  }
};

extern "C" void case_launch(float* out, std::int64_t count, const float* const* in, const std::int64_t* counts,
                            const double* numbers, cudaStream_t stream) {
  const Step step{static_cast<int>(numbers[0])};
  auto values = thrust::make_transform_iterator(in[0], step);
  std::size_t bytes = 0;
  cub::DeviceScan::InclusiveScan(nullptr, bytes, values, out, Last{}, static_cast<int>(count), stream);
  static void* space = nullptr;
  if (space == nullptr) cudaMalloc(&space, bytes);
  cub::DeviceScan::InclusiveScan(space, bytes, values, out, Last{}, static_cast<int>(count), stream);
}
