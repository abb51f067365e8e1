// out[row, i] = (x[row, i] - mean) / sqrt(variance + eps) * weight[i] + bias[i] on the GPU, mean and variance over the
// row, for row-major [rows, columns].
//
// Bound by memory: 8 bytes an element if each is read once, so the row is kept in registers between reading and
// writing. That also makes the exact way the cheap one: first the mean, then the squares of what differs from it.
// Weight and bias are the same for every row and stay in the L1 cache, from which x is kept away by its streaming
// loads.
#include <cstdint>

#include <cuda_runtime.h>

namespace {

constexpr int kWarp = 32;
constexpr int kLongThreads = 512;

template <int kLanes>
__device__ float lanes_sum(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// Of the whole block, in every thread. Two sums one after the other need a place in shared memory each.
template <int kThreads>
__device__ float block_sum(float value, float* of_warp) {
  constexpr int kWarps = kThreads / kWarp;
  value = lanes_sum<kWarp>(value);
  if constexpr (kWarps > 1) {
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = lanes_sum<kWarps>(of_warp[threadIdx.x % kWarps]);
  }
  return value;
}

__device__ float square(float value) { return value * value; }

// Rows of at most 4 * kThreads * kFours elements. Each value is divided by their number before it is added: a sum of
// large ones would overflow where their mean does not.
template <int kThreads, int kFours>
__global__ void __launch_bounds__(kThreads)
    layer_norm_kept(float4* out, const float4* x, const float4* weight, const float4* bias, int fours, float eps) {
  const float4* row = x + static_cast<std::int64_t>(blockIdx.x) * fours;
  float4* row_out = out + static_cast<std::int64_t>(blockIdx.x) * fours;
  const float share = 1.0f / static_cast<float>(4 * fours);
  float4 v[kFours];
#pragma unroll
  for (int k = 0; k < kFours; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kThreads;
    v[k] = i < fours ? __ldcs(row + i) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kFours; ++k) sum += (v[k].x * share + v[k].y * share) + (v[k].z * share + v[k].w * share);
  __shared__ float sums[kThreads / kWarp];
  const float mean = block_sum<kThreads>(sum, sums);

  float squares = 0.0f;
#pragma unroll
  for (int k = 0; k < kFours; ++k) {
    if (static_cast<int>(threadIdx.x) + k * kThreads < fours) {
      v[k] = make_float4(v[k].x - mean, v[k].y - mean, v[k].z - mean, v[k].w - mean);
      squares += (square(v[k].x) + square(v[k].y)) + (square(v[k].z) + square(v[k].w));
    }
  }
  __shared__ float sums_of_squares[kThreads / kWarp];
  const float scale = rsqrtf(block_sum<kThreads>(squares, sums_of_squares) * share + eps);

#pragma unroll
  for (int k = 0; k < kFours; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kThreads;
    if (i < fours) {
      const float4 w = weight[i];
      const float4 b = bias[i];
      __stcs(row_out + i, make_float4(v[k].x * scale * w.x + b.x, v[k].y * scale * w.y + b.y,
                                      v[k].z * scale * w.z + b.z, v[k].w * scale * w.w + b.w));
    }
  }
}

// Any row: read three times, one element at a time. Not the first time it comes from the L2 cache if it is not too
// long.
__global__ void __launch_bounds__(kLongThreads) layer_norm_reread(float* out, const float* x, const float* weight,
                                                                  const float* bias, std::int64_t columns, float eps) {
  const float* row = x + blockIdx.x * columns;
  float* row_out = out + blockIdx.x * columns;
  const float share = 1.0f / static_cast<float>(columns);
  float sum = 0.0f;
  for (std::int64_t i = threadIdx.x; i < columns; i += kLongThreads) sum += row[i] * share;
  __shared__ float sums[kLongThreads / kWarp];
  const float mean = block_sum<kLongThreads>(sum, sums);

  float squares = 0.0f;
  for (std::int64_t i = threadIdx.x; i < columns; i += kLongThreads) squares += square(row[i] - mean);
  __shared__ float sums_of_squares[kLongThreads / kWarp];
  const float scale = rsqrtf(block_sum<kLongThreads>(squares, sums_of_squares) * share + eps);

  for (std::int64_t i = threadIdx.x; i < columns; i += kLongThreads) {
    __stcs(row_out + i, (row[i] - mean) * scale * weight[i] + bias[i]);
  }
}

struct Call {
  float* out;
  const float* x;
  const float* weight;
  const float* bias;
  std::int64_t rows;
  std::int64_t columns;
  float eps;
  cudaStream_t stream;
};

template <int kThreads, int kFours>
void launch_kept(const Call& call) {
  layer_norm_kept<kThreads, kFours><<<static_cast<unsigned>(call.rows), kThreads, 0, call.stream>>>(
      reinterpret_cast<float4*>(call.out), reinterpret_cast<const float4*>(call.x),
      reinterpret_cast<const float4*>(call.weight), reinterpret_cast<const float4*>(call.bias),
      static_cast<int>(call.columns / 4), call.eps);
}

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(float4) == 0; }

}  // namespace

/// Returns what the launch returned. `stream` is the one to launch on.
extern "C" cudaError_t layer_norm_launch(float* out, const float* x, const float* weight, const float* bias,
                                         std::int64_t rows, std::int64_t columns, float eps, cudaStream_t stream) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  const Call call = {out, x, weight, bias, rows, columns, eps, stream};
  const bool by_four = columns % 4 == 0 && aligned(out) && aligned(x) && aligned(weight) && aligned(bias);
  if (by_four && columns <= 128) {
    launch_kept<32, 1>(call);
  } else if (by_four && columns <= 512) {
    launch_kept<32, 4>(call);
  } else if (by_four && columns <= 1024) {
    launch_kept<128, 2>(call);
  } else if (by_four && columns <= 2048) {
    launch_kept<128, 4>(call);
  } else if (by_four && columns <= 4096) {
    launch_kept<256, 4>(call);
  } else if (by_four && columns <= 8192) {
    launch_kept<512, 4>(call);
  } else if (by_four && columns <= 16384) {
    launch_kept<512, 8>(call);
  } else {
    layer_norm_reread<<<static_cast<unsigned>(rows), kLongThreads, 0, stream>>>(out, x, weight, bias, columns, eps);
  }
  return cudaGetLastError();
}
