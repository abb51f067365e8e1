// out[row] = sqrt(sum over i of x[row, i]^2) on the GPU, for row-major [rows, columns].
//
// Bound by memory: 4 bytes read an element, one float written a row. What counts is how many bytes are on their way at
// a time: a thread asks for kInFlight times 16 bytes before it uses the first of them, and several blocks share an SM,
// so that one reads while another adds up.
#include <cstdint>

#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 512;
constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr int kInFlight = 4;

template <int kLanes>
__device__ float lanes_sum(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

__device__ float squares(float4 v) { return (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w); }
__device__ float squares(float v) { return v * v; }

// T is float4 or float; `width` is the length of a row in T.
template <typename T>
__global__ void __launch_bounds__(kThreads) row_norm(float* out, const T* x, std::int64_t width) {
  const T* row = x + blockIdx.x * width;
  float sums[kInFlight] = {};
  std::int64_t i = threadIdx.x;
  for (; i + (kInFlight - 1) * kThreads < width; i += kInFlight * kThreads) {
    T values[kInFlight];
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) values[k] = __ldcs(row + i + k * kThreads);
#pragma unroll
    for (int k = 0; k < kInFlight; ++k) sums[k] += squares(values[k]);
  }
#pragma unroll 1
  for (; i < width; i += kThreads) sums[0] += squares(__ldcs(row + i));

  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kInFlight; ++k) sum += sums[k];
  sum = lanes_sum<kWarp>(sum);
  __shared__ float of_warp[kWarps];
  if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = sum;
  __syncthreads();
  if (threadIdx.x < kWarp) {
    sum = lanes_sum<kWarps>(of_warp[threadIdx.x % kWarps]);
    if (threadIdx.x == 0) out[blockIdx.x] = __fsqrt_rn(sum);  // exact, also under --use_fast_math
  }
}

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(float4) == 0; }

}  // namespace

/// Returns what the launch returned. `stream` is the one to launch on.
extern "C" cudaError_t row_norm_launch(float* out, const float* x, std::int64_t rows, std::int64_t columns,
                                       cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(rows);
  if (columns % 4 == 0 && aligned(x)) {
    row_norm<float4><<<blocks, kThreads, 0, stream>>>(out, reinterpret_cast<const float4*>(x), columns / 4);
  } else {
    row_norm<float><<<blocks, kThreads, 0, stream>>>(out, x, columns);
  }
  return cudaGetLastError();
}
