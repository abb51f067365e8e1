// out[row] = sqrt(mean over i of (alpha * a[row, i] + b[row, i])^2) on the GPU, for row-major [rows, columns].
//
// One block a row, and the sum never leaves the SM: 8 bytes read an element, nothing written but one float a row.
// A thread sums its elements in float, a warp by shuffles, the block through shared memory.
#include <cstdint>

#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 512;
constexpr int kWarp = 32;

__device__ float warp_sum(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__global__ void __launch_bounds__(kThreads)
    axpby_rms(float* out, const float* a, const float* b, float alpha, std::int64_t columns, bool by_four) {
  __shared__ float of_warp[kThreads / kWarp];
  const float* row_a = a + blockIdx.x * columns;
  const float* row_b = b + blockIdx.x * columns;
  float sum = 0.0f;
  if (by_four) {
    const auto* four_a = reinterpret_cast<const float4*>(row_a);
    const auto* four_b = reinterpret_cast<const float4*>(row_b);
    for (std::int64_t i = threadIdx.x; i < columns / 4; i += kThreads) {
      const float4 x = four_a[i];
      const float4 y = four_b[i];
      const float v0 = alpha * x.x + y.x;
      const float v1 = alpha * x.y + y.y;
      const float v2 = alpha * x.z + y.z;
      const float v3 = alpha * x.w + y.w;
      sum += (v0 * v0 + v1 * v1) + (v2 * v2 + v3 * v3);
    }
  } else {
    for (std::int64_t i = threadIdx.x; i < columns; i += kThreads) {
      const float v = alpha * row_a[i] + row_b[i];
      sum += v * v;
    }
  }
  sum = warp_sum(sum);
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = sum;
  __syncthreads();
  if (threadIdx.x < kWarp) {
    sum = warp_sum(threadIdx.x < kThreads / kWarp ? of_warp[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) out[blockIdx.x] = sqrtf(sum / static_cast<float>(columns));
  }
}

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(float4) == 0; }

}  // namespace

/// Returns what the launch returned. `stream` is the one to launch on.
extern "C" cudaError_t axpby_rms_launch(float* out, const float* a, const float* b, float alpha, std::int64_t rows,
                                        std::int64_t columns, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const bool by_four = columns % 4 == 0 && aligned(a) && aligned(b);
  axpby_rms<<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(out, a, b, alpha, columns, by_four);
  return cudaGetLastError();
}
