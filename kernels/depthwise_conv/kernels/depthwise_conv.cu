// out[n, c, y, x] = sum over i, j in 0..2 of in[n, c, y + i - 1, x + j - 1] * weight[c, i, j] on the GPU, where what
// lies outside of the plane counts as zero; float32, batch and channels together are `planes`.
//
// Bound by memory: 8 bytes an element and 9 multiply-adds. A thread computes kRows x kWide outputs. It reads the
// kRows + 2 rows around them once, 16 bytes at a time and all before the first is used, and its neighbours in a row by
// themselves: those come from the L1 cache, since the whole plane of a block is there. Rows are added in the order in
// which they lie, so that the window needs no shared memory and no barrier.
#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

namespace {

constexpr int kRows = 4;
// Seven warps: a plane of 56 x 56 has 196 tiles. With four such blocks an SM a thread may have 72 registers, which hold
// its window without a spill.
constexpr int kThreads = 224;
constexpr int kBlocksOfSm = 4;

__device__ void load(float (&to)[4], const float* from) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  to[0] = v.x;
  to[1] = v.y;
  to[2] = v.z;
  to[3] = v.w;
}
__device__ void load(float (&to)[1], const float* from) { to[0] = *from; }

__device__ void store(float* to, const float (&v)[4]) {
  __stcs(reinterpret_cast<float4*>(to), make_float4(v[0], v[1], v[2], v[3]));
}
__device__ void store(float* to, const float (&v)[1]) { __stcs(to, v[0]); }

// sum[k] += what a row of the input, with one neighbour on each side, adds to a row of the output. Neighbours outside
// of the plane are left out and not multiplied by zero: a weight may be infinite.
template <int kWide>
__device__ void add_row(float (&sum)[kWide], float left, const float (&middle)[kWide], float right, const float* weight,
                        bool has_left, bool has_right) {
#pragma unroll
  for (int k = 0; k < kWide; ++k) {
    if (k > 0) {
      sum[k] += middle[k - 1] * weight[0];
    } else if (has_left) {
      sum[k] += left * weight[0];
    }
    sum[k] += middle[k] * weight[1];
    if (k < kWide - 1) {
      sum[k] += middle[k + 1] * weight[2];
    } else if (has_right) {
      sum[k] += right * weight[2];
    }
  }
}

// kRows x kWide outputs; `in` and `out` point to the first of them, at row y and column x. Rows of the window that are
// outside of the plane are neither read nor used.
template <int kWide>
__device__ void tile(float* out, const float* in, const float (&weight)[9], int y, int x, int height, int width) {
  const bool has_left = x > 0;
  const bool has_right = x + kWide < width;
  float left[kRows + 2];
  float middle[kRows + 2][kWide];
  float right[kRows + 2];
#pragma unroll
  for (int i = 0; i < kRows + 2; ++i) {
    if ((i > 0 || y > 0) && y - 1 + i < height) {
      const float* from = in + (i - 1) * width;
      load(middle[i], from);
      if (has_left) left[i] = from[-1];
      if (has_right) right[i] = from[kWide];
    }
  }
  float sum[kRows][kWide] = {};
#pragma unroll
  for (int i = 0; i < kRows + 2; ++i) {
    if ((i > 0 || y > 0) && y - 1 + i < height) {
#pragma unroll
      for (int k = 0; k < kRows; ++k) {
        if (k <= i && i <= k + 2) {
          add_row(sum[k], left[i], middle[i], right[i], weight + 3 * (i - k), has_left, has_right);
        }
      }
    }
    if (i >= 2 && y + i - 2 < height) store(out + (i - 2) * width, sum[i - 2]);
  }
}

// A block has one plane or, if they are small, blockDim.z of them.
template <int kWide>
__global__ void __launch_bounds__(kThreads, kBlocksOfSm)
    depthwise_conv(float* out, const float* in, const float* weight, unsigned planes, unsigned channels, int height,
                   int width) {
  const unsigned plane = blockIdx.x * blockDim.z + threadIdx.z;
  if (plane >= planes) return;
  const std::int64_t first = static_cast<std::int64_t>(plane) * (height * width);
  float w[9];
#pragma unroll
  for (int k = 0; k < 9; ++k) w[k] = weight[static_cast<std::int64_t>(plane % channels) * 9 + k];
  for (int y = static_cast<int>(threadIdx.y) * kRows; y < height; y += static_cast<int>(blockDim.y) * kRows) {
    for (int x = static_cast<int>(threadIdx.x) * kWide; x < width; x += static_cast<int>(blockDim.x) * kWide) {
      const std::int64_t at = first + (y * width + x);
      tile<kWide>(out + at, in + at, w, y, x, height, width);
    }
  }
}

template <int kWide>
void launch(float* out, const float* in, const float* weight, unsigned planes, unsigned channels, int height, int width,
            cudaStream_t stream) {
  dim3 threads;
  threads.x = static_cast<unsigned>(std::min(width / kWide, 64));
  threads.y = static_cast<unsigned>(std::min<int>((height + kRows - 1) / kRows, kThreads / threads.x));
  threads.z = std::min(kThreads / (threads.x * threads.y), 64u);
  const unsigned blocks = (planes + threads.z - 1) / threads.z;
  depthwise_conv<kWide><<<blocks, threads, 0, stream>>>(out, in, weight, planes, channels, height, width);
}

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(float4) == 0; }

}  // namespace

/// Returns what the launch returned. `stream` is the one to launch on. The planes, and the elements of one of them with
/// the kRows rows that a tile may reach beyond it, are fewer than 2^31.
extern "C" cudaError_t depthwise_conv_launch(float* out, const float* in, const float* weight, unsigned planes,
                                             unsigned channels, int height, int width, cudaStream_t stream) {
  if (planes == 0 || height == 0 || width == 0) return cudaSuccess;
  if (width % 4 == 0 && aligned(out) && aligned(in)) {
    launch<4>(out, in, weight, planes, channels, height, width, stream);
  } else {
    launch<1>(out, in, weight, planes, channels, height, width, stream);
  }
  return cudaGetLastError();
}
