// out[row, i] = gelu_tanh(x[row, i] + bias[i]) on the GPU, for row-major [rows, columns].
//
// Bound by memory: 8 bytes an element. A thread owns four neighbouring columns, so that it reads its piece of the bias
// once, and has the loads of kRows rows in flight at a time.
#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;
constexpr int kRows = 4;
// Left alone, the compiler saves registers for a sixth block and asks for two rows at a time instead of four.
constexpr int kBlocksOfSm = 4;
constexpr unsigned kMostBlocks = 65535;

// 0.5 v (1 + tanh(u)) = v / (1 + exp(-2u)): one exponential, and no difference of nearly equal numbers where tanh is
// close to -1. The limits are eager's: +inf stays, -inf becomes -inf / inf = NaN, and so does NaN.
__device__ float gelu_tanh(float v) {
  constexpr float kBeta = 0.7978845608028654f;  // sqrt(2 / pi)
  constexpr float kKappa = 0.044715f;
  const float u = kBeta * (v + kKappa * (v * v * v));
  return __fdividef(v, 1.0f + __expf(-2.0f * u));
}

// Nothing here is read again, so neither loads nor stores should push anything out of the cache.
__device__ float4 load(const float4* from) { return __ldcs(from); }
__device__ float load(const float* from) { return __ldcs(from); }

__device__ void store(float4* to, float4 x, float4 b) {
  __stcs(to, make_float4(gelu_tanh(x.x + b.x), gelu_tanh(x.y + b.y), gelu_tanh(x.z + b.z), gelu_tanh(x.w + b.w)));
}
__device__ void store(float* to, float x, float b) { __stcs(to, gelu_tanh(x + b)); }

// T is float4 or float; `width` is the length of a row in T. Threads are [rows, columns], x along the columns.
template <typename T>
__global__ void __launch_bounds__(kThreads, kBlocksOfSm)
    bias_gelu(T* out, const T* x, const T* bias, std::int64_t rows, std::int64_t width) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= width) return;
  const T b = bias[column];
  const std::int64_t step = static_cast<std::int64_t>(gridDim.y) * blockDim.y * kRows;
  std::int64_t row = (static_cast<std::int64_t>(blockIdx.y) * blockDim.y + threadIdx.y) * kRows;
  for (; row + kRows <= rows; row += step) {
    const std::int64_t first = row * width + column;
    T values[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) values[i] = load(x + first + i * width);
#pragma unroll
    for (int i = 0; i < kRows; ++i) store(out + first + i * width, values[i], b);
  }
#pragma unroll 1
  for (; row < rows; ++row) store(out + row * width + column, load(x + row * width + column), b);
}

template <typename T>
void launch(T* out, const T* x, const T* bias, std::int64_t rows, std::int64_t width, cudaStream_t stream) {
  // Short rows share a block, so that its threads are not idle.
  unsigned across = 32;
  while (across < kThreads && across < width) across *= 2;
  const dim3 threads(across, kThreads / across);
  const std::int64_t rows_of_block = static_cast<std::int64_t>(threads.y) * kRows;
  const dim3 blocks(
      static_cast<unsigned>((width + across - 1) / across),
      static_cast<unsigned>(std::min<std::int64_t>((rows + rows_of_block - 1) / rows_of_block, kMostBlocks)));
  bias_gelu<T><<<blocks, threads, 0, stream>>>(out, x, bias, rows, width);
}

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(float4) == 0; }

}  // namespace

/// Returns what the launch returned. `stream` is the one to launch on.
extern "C" cudaError_t bias_gelu_launch(float* out, const float* x, const float* bias, std::int64_t rows,
                                        std::int64_t columns, cudaStream_t stream) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  if (columns % 4 == 0 && aligned(out) && aligned(x) && aligned(bias)) {
    launch(reinterpret_cast<float4*>(out), reinterpret_cast<const float4*>(x), reinterpret_cast<const float4*>(bias),
           rows, columns / 4, stream);
  } else {
    launch(out, x, bias, rows, columns, stream);
  }
  return cudaGetLastError();
}
