// out[row, i] = exp(x[row, i] - max) / sum over j of exp(x[row, j] - max) on the GPU, for row-major [rows, columns].
//
// Bound by memory: 8 bytes an element if each is read once, so the row is kept in registers between reading and
// writing. Every thread takes exponentials relative to its own maximum; maximum and sum then go through the block
// together, at the price of one barrier instead of two, and each thread corrects its values by one factor.
#include <cstdint>

#include <cuda_runtime.h>

namespace {

constexpr int kWarp = 32;
constexpr int kLongThreads = 512;

__device__ float infinity() { return __int_as_float(0x7f800000); }

template <int kLanes>
__device__ float lanes_max(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  return value;
}

template <int kLanes>
__device__ float lanes_sum(float value) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}

// What exponentials are taken relative to. Of nothing but -inf it is 0, because -inf - -inf is NaN where a part of a
// row must count as nothing. A row that is -inf throughout still ends as 0 / 0. fmaxf() passes over NaN, the sum does
// not.
__device__ float base_of(float maximum) { return maximum == -infinity() ? 0.0f : maximum; }

// The sum of exp(x - base) over some values, and what it is relative to.
struct Part {
  float maximum;
  float sum;
};

template <int kLanes>
__device__ Part lanes_merge(Part part) {
  const float maximum = lanes_max<kLanes>(part.maximum);
  return {maximum, lanes_sum<kLanes>(part.sum * __expf(part.maximum - base_of(maximum)))};
}

// Of the whole block, in every thread.
template <int kThreads>
__device__ Part block_merge(Part part) {
  constexpr int kWarps = kThreads / kWarp;
  part = lanes_merge<kWarp>(part);
  if constexpr (kWarps > 1) {
    __shared__ Part of_warp[kWarps];
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = part;
    __syncthreads();
    part = lanes_merge<kWarps>(of_warp[threadIdx.x % kWarps]);
  }
  return part;
}

// What exponentials relative to base_of(maximum) are multiplied with. __frcp_rn: exact, also under --use_fast_math.
__device__ float factor_of(float maximum, Part of_row) {
  return __expf(maximum - base_of(of_row.maximum)) * __frcp_rn(of_row.sum);
}

// Rows of at most 4 * kThreads * kFours elements.
template <int kThreads, int kFours>
__global__ void __launch_bounds__(kThreads) softmax_kept(float4* out, const float4* x, int fours) {
  const float4* row = x + static_cast<std::int64_t>(blockIdx.x) * fours;
  float4* row_out = out + static_cast<std::int64_t>(blockIdx.x) * fours;
  float4 v[kFours];
#pragma unroll
  for (int k = 0; k < kFours; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kThreads;
    v[k] = i < fours ? __ldcs(row + i) : make_float4(-infinity(), -infinity(), -infinity(), -infinity());
  }
  float maximum = -infinity();
#pragma unroll
  for (int k = 0; k < kFours; ++k) maximum = fmaxf(maximum, fmaxf(fmaxf(v[k].x, v[k].y), fmaxf(v[k].z, v[k].w)));
  const float base = base_of(maximum);
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kFours; ++k) {
    v[k] = make_float4(__expf(v[k].x - base), __expf(v[k].y - base), __expf(v[k].z - base), __expf(v[k].w - base));
    sum += (v[k].x + v[k].y) + (v[k].z + v[k].w);
  }
  const float factor = factor_of(maximum, block_merge<kThreads>({maximum, sum}));
#pragma unroll
  for (int k = 0; k < kFours; ++k) {
    const int i = static_cast<int>(threadIdx.x) + k * kThreads;
    if (i < fours) {
      __stcs(row_out + i, make_float4(v[k].x * factor, v[k].y * factor, v[k].z * factor, v[k].w * factor));
    }
  }
}

// Any row: read twice, one element at a time. The second time a row comes from the L2 cache if it is not too long.
__global__ void __launch_bounds__(kLongThreads) softmax_reread(float* out, const float* x, std::int64_t columns) {
  const float* row = x + blockIdx.x * columns;
  float* row_out = out + blockIdx.x * columns;
  Part part = {-infinity(), 0.0f};
  for (std::int64_t i = threadIdx.x; i < columns; i += kLongThreads) {
    const float v = row[i];
    const float maximum = fmaxf(part.maximum, v);
    const float base = base_of(maximum);
    // Where the maximum stays, as it mostly does, the sum is not rounded by a factor.
    if (maximum > part.maximum) part.sum *= __expf(part.maximum - base);
    part = {maximum, part.sum + __expf(v - base)};
  }
  part = block_merge<kLongThreads>(part);
  const float base = base_of(part.maximum);
  const float factor = factor_of(part.maximum, part);
  for (std::int64_t i = threadIdx.x; i < columns; i += kLongThreads)
    __stcs(row_out + i, __expf(row[i] - base) * factor);
}

template <int kThreads, int kFours>
void launch_kept(float* out, const float* x, std::int64_t rows, std::int64_t columns, cudaStream_t stream) {
  softmax_kept<kThreads, kFours><<<static_cast<unsigned>(rows), kThreads, 0, stream>>>(
      reinterpret_cast<float4*>(out), reinterpret_cast<const float4*>(x), static_cast<int>(columns / 4));
}

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(float4) == 0; }

}  // namespace

/// Returns what the launch returned. `stream` is the one to launch on.
extern "C" cudaError_t softmax_launch(float* out, const float* x, std::int64_t rows, std::int64_t columns,
                                      cudaStream_t stream) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  const bool by_four = columns % 4 == 0 && aligned(out) && aligned(x);
  if (by_four && columns <= 128) {
    launch_kept<32, 1>(out, x, rows, columns, stream);
  } else if (by_four && columns <= 512) {
    launch_kept<32, 4>(out, x, rows, columns, stream);
  } else if (by_four && columns <= 1024) {
    launch_kept<128, 2>(out, x, rows, columns, stream);
  } else if (by_four && columns <= 2048) {
    launch_kept<128, 4>(out, x, rows, columns, stream);
  } else if (by_four && columns <= 4096) {
    launch_kept<256, 4>(out, x, rows, columns, stream);
  } else if (by_four && columns <= 8192) {
    launch_kept<512, 4>(out, x, rows, columns, stream);
  } else if (by_four && columns <= 16384) {
    launch_kept<512, 8>(out, x, rows, columns, stream);
  } else if (by_four && columns <= 32768) {
    launch_kept<1024, 8>(out, x, rows, columns, stream);
  } else {
    softmax_reread<<<static_cast<unsigned>(rows), kLongThreads, 0, stream>>>(out, x, columns);
  }
  return cudaGetLastError();
}
