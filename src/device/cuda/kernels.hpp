// The supervisor's kernels. Each call enqueues on `stream` and returns what the launch returned.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace cuda_agent::device::kernels {

inline constexpr int most_dimensions = 64;
inline constexpr int most_blocks = 2048;

/// Where the elements of two tensors of one shape lie: dimensions outermost first, strides in bytes.
struct Walk {
  int dimensions = 0;
  bool contiguous = false;  ///< both: element i lies at i · item
  std::int64_t size[most_dimensions];
  std::int64_t expected[most_dimensions];
  std::int64_t got[most_dimensions];
};

/// How an element is stored; the names are those of DType.
struct Pair {
  const std::byte* expected = nullptr;
  const std::byte* got = nullptr;
  int dtype = 0;         ///< device::DType as a number
  int item = 1;          ///< bytes of an element
  bool aligned = false;  ///< every element lies at a multiple of its parts' size
  bool equal_nan = true;
  std::int64_t elements = 0;
};

/// What one block has seen in the first pass.
struct Partial {
  double squared_error = 0;
  double squared_expected = 0;
  double max_error = 0;
  double max_ratio = 0;
  std::int64_t worst = -1;
  std::int64_t finite_pairs = 0;
  std::int64_t finite_expected = 0;
  int flags = 0;
};

inline constexpr int expected_nonzero = 1;
inline constexpr int got_nonzero = 2;
inline constexpr int not_alike = 4;

/// What the second pass has counted, over all blocks. To be zeroed before, `first` to all ones.
struct Mismatches {
  unsigned long long all = 0;
  unsigned long long nan = 0;
  unsigned long long inf = 0;
  unsigned long long first = ~0ULL;
};

/// Blocks that `measure` uses, which is how many partials it writes.
int blocks_for(std::int64_t elements);

cudaError_t measure(const Pair& pair, const Walk& walk, Partial* partials, cudaStream_t stream);
cudaError_t count_mismatches(const Pair& pair, const Walk& walk, double rtol, double atol, Mismatches* result,
                             cudaStream_t stream);

/// *differ becomes 1 when a byte differs; it is not written otherwise.
cudaError_t find_difference(const std::byte* a, const std::byte* b, std::uint64_t bytes, int* differ,
                            cudaStream_t stream);

/// Plausible floats in [−2, 2) of 16, 32 or 64 bits, other ones for each seed.
cudaError_t fill_with_noise(std::byte* memory, std::uint64_t bytes, std::uint64_t seed, cudaStream_t stream);

}  // namespace cuda_agent::device::kernels
