// total = x + residual and normed[row, i] = weight[i] * (total[row, i] / sqrt(mean over j of total[row, j]^2 + eps)) on
// the GPU, for row-major bfloat16 [rows, columns].
//
// Bound by memory: 8 bytes an element if each is read and written once, so the row is kept in registers. Sums are
// float32. As in eager mode three results are rounded to bfloat16: the total, before its squares are taken; the
// normalised total; and its product with the weight. The total is kept rounded, so that it takes no more registers than
// what was read.
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

constexpr int kWarp = 32;
constexpr int kEight = 8;  // bfloat16 in 16 bytes
constexpr int kLongThreads = 512;

template <int kLanes>
__device__ float lanes_sum(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// Of the whole block, in every thread.
template <int kThreads>
__device__ float block_sum(float value) {
  constexpr int kWarps = kThreads / kWarp;
  value = lanes_sum<kWarp>(value);
  if constexpr (kWarps > 1) {
    __shared__ float of_warp[kWarps];
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = lanes_sum<kWarps>(of_warp[threadIdx.x % kWarps]);
  }
  return value;
}

// Two bfloat16 in a word: the one at the lower address is in the lower half, and a bfloat16 is the upper half of a
// float.
__device__ float low(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ float high(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }

__device__ unsigned rounded(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return static_cast<unsigned>(__bfloat16_as_ushort(pair.x)) | static_cast<unsigned>(__bfloat16_as_ushort(pair.y))
                                                                   << 16;
}

__device__ unsigned added(unsigned a, unsigned b) { return rounded(low(a) + low(b), high(a) + high(b)); }
__device__ float squares(unsigned pair) { return low(pair) * low(pair) + high(pair) * high(pair); }
__device__ unsigned normed_of(unsigned total, float scale, unsigned weight) {
  const unsigned scaled = rounded(low(total) * scale, high(total) * scale);
  return rounded(low(weight) * low(scaled), high(weight) * high(scaled));
}

// Rows of at most kEight * kThreads * kEights elements; `eights` is the length of a row in uint4.
template <int kThreads, int kEights>
__global__ void __launch_bounds__(kThreads)
    add_rms_norm_kept(uint4* total, uint4* normed, const uint4* x, const uint4* residual, const uint4* weight,
                      int eights, float eps) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * eights;
  uint4 a[kEights];
  uint4 b[kEights];
#pragma unroll
  for (int k = 0; k < kEights; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kThreads;
    const uint4 nothing = make_uint4(0, 0, 0, 0);
    a[k] = i < eights ? __ldcs(x + first + i) : nothing;
    b[k] = i < eights ? __ldcs(residual + first + i) : nothing;
  }
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kEights; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kThreads;
    a[k] = make_uint4(added(a[k].x, b[k].x), added(a[k].y, b[k].y), added(a[k].z, b[k].z), added(a[k].w, b[k].w));
    if (i < eights) __stcs(total + first + i, a[k]);
    sum += (squares(a[k].x) + squares(a[k].y)) + (squares(a[k].z) + squares(a[k].w));
  }
  const float scale = rsqrtf(block_sum<kThreads>(sum) * (1.0f / static_cast<float>(kEight * eights)) + eps);
#pragma unroll
  for (int k = 0; k < kEights; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kThreads;
    if (i < eights) {
      const uint4 w = weight[i];
      __stcs(normed + first + i, make_uint4(normed_of(a[k].x, scale, w.x), normed_of(a[k].y, scale, w.y),
                                            normed_of(a[k].z, scale, w.z), normed_of(a[k].w, scale, w.w)));
    }
  }
}

// Any row, one element at a time; the second time a thread reads what it has written itself.
__global__ void __launch_bounds__(kLongThreads)
    add_rms_norm_reread(unsigned short* total, unsigned short* normed, const unsigned short* x,
                        const unsigned short* residual, const unsigned short* weight, std::int64_t columns, float eps) {
  const std::int64_t first = blockIdx.x * columns;
  float sum = 0.0f;
  for (std::int64_t i = threadIdx.x; i < columns; i += kLongThreads) {
    const unsigned value = added(x[first + i], residual[first + i]);
    total[first + i] = static_cast<unsigned short>(value);
    sum += squares(value);
  }
  const float scale = rsqrtf(block_sum<kLongThreads>(sum) * (1.0f / static_cast<float>(columns)) + eps);
  for (std::int64_t i = threadIdx.x; i < columns; i += kLongThreads) {
    __stcs(normed + first + i, static_cast<unsigned short>(normed_of(total[first + i], scale, weight[i])));
  }
}

struct Call {
  void* total;
  void* normed;
  const void* x;
  const void* residual;
  const void* weight;
  std::int64_t rows;
  std::int64_t columns;
  float eps;
  cudaStream_t stream;
};

template <int kThreads, int kEights>
void launch_kept(const Call& call) {
  add_rms_norm_kept<kThreads, kEights><<<static_cast<unsigned>(call.rows), kThreads, 0, call.stream>>>(
      static_cast<uint4*>(call.total), static_cast<uint4*>(call.normed), static_cast<const uint4*>(call.x),
      static_cast<const uint4*>(call.residual), static_cast<const uint4*>(call.weight),
      static_cast<int>(call.columns / kEight), call.eps);
}

void launch_reread(const Call& call) {
  add_rms_norm_reread<<<static_cast<unsigned>(call.rows), kLongThreads, 0, call.stream>>>(
      static_cast<unsigned short*>(call.total), static_cast<unsigned short*>(call.normed),
      static_cast<const unsigned short*>(call.x), static_cast<const unsigned short*>(call.residual),
      static_cast<const unsigned short*>(call.weight), call.columns, call.eps);
}

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(uint4) == 0; }

}  // namespace

/// All pointers are to bfloat16. Returns what the launch returned. `stream` is the one to launch on.
extern "C" cudaError_t add_rms_norm_launch(void* total, void* normed, const void* x, const void* residual,
                                           const void* weight, std::int64_t rows, std::int64_t columns, float eps,
                                           cudaStream_t stream) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  const Call call = {total, normed, x, residual, weight, rows, columns, eps, stream};
  const bool by_eight =
      columns % kEight == 0 && aligned(total) && aligned(normed) && aligned(x) && aligned(residual) && aligned(weight);
  if (by_eight && columns <= 256) {
    launch_kept<32, 1>(call);
  } else if (by_eight && columns <= 1024) {
    launch_kept<128, 1>(call);
  } else if (by_eight && columns <= 2048) {
    launch_kept<128, 2>(call);
  } else if (by_eight && columns <= 4096) {
    launch_kept<256, 2>(call);
  } else if (by_eight && columns <= 8192) {
    launch_kept<256, 4>(call);
  } else if (by_eight && columns <= 16384) {
    launch_kept<512, 4>(call);
  } else {
    launch_reread(call);
  }
  return cudaGetLastError();
}
