#include <cmath>
#include <cstring>

#include "device/cuda/kernels.hpp"
#include "device/tensor_layout.hpp"

namespace cuda_agent::device::kernels {
namespace {

constexpr int threads = 256;

// --- reading elements ------------------------------------------------------------------------------------------------

template <typename T>
__device__ T read(const std::byte* place, bool aligned) {
  if (aligned) return *reinterpret_cast<const T*>(place);
  T value;
  memcpy(&value, place, sizeof value);  // byte by byte: arenas may hold tensors at any offset
  return value;
}

/// IEEE binary16. The product scales the exponent and normalises subnormals; it is exact.
__device__ double from_half(std::uint16_t half) {
  const std::uint32_t magnitude = (half & 0x7fffU) << 13U;
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t special = magnitude >= 0x0f800000U ? 0x7f800000U : 0U;
  const std::uint32_t scaled = __float_as_uint(__uint_as_float(magnitude) * 0x1p112F);
  return __uint_as_float(scaled | special | sign);
}

__device__ double from_e4m3fn(std::uint8_t stored) {
  const std::uint32_t magnitude = stored & 0x7fU;
  if (magnitude == 0x7fU) return __uint_as_float(0x7fc00000U);
  const float size = __uint_as_float(magnitude << 20U) * 0x1p120F;
  return (stored & 0x80U) != 0 ? -size : size;
}

__device__ double load_real(const std::byte* place, DType dtype, bool aligned) {
  switch (dtype) {
    case DType::float64:
    case DType::complex128:
      return read<double>(place, aligned);
    case DType::float16:
    case DType::complex32:
      return from_half(read<std::uint16_t>(place, aligned));
    case DType::bfloat16:
      return __uint_as_float(static_cast<std::uint32_t>(read<std::uint16_t>(place, aligned)) << 16U);
    case DType::float8_e4m3fn:
      return from_e4m3fn(read<std::uint8_t>(place, true));
    case DType::float8_e5m2:
      return from_half(static_cast<std::uint16_t>(read<std::uint8_t>(place, true) << 8U));
    default:
      return read<float>(place, aligned);
  }
}

struct Complex {
  double real;
  double imag;
};

template <typename Value>
__device__ Value load(const std::byte* place, DType dtype, int item, bool aligned);

template <>
__device__ double load<double>(const std::byte* place, DType dtype, int, bool aligned) {
  return load_real(place, dtype, aligned);
}

template <>
__device__ Complex load<Complex>(const std::byte* place, DType dtype, int item, bool aligned) {
  return {load_real(place, dtype, aligned), load_real(place + item / 2, dtype, aligned)};
}

template <>
__device__ std::int64_t load<std::int64_t>(const std::byte* place, DType dtype, int, bool aligned) {
  switch (dtype) {
    case DType::int64:
      return read<std::int64_t>(place, aligned);
    case DType::int32:
      return read<std::int32_t>(place, aligned);
    case DType::uint32:
      return read<std::uint32_t>(place, aligned);
    case DType::int16:
      return read<std::int16_t>(place, aligned);
    case DType::uint16:
      return read<std::uint16_t>(place, aligned);
    case DType::int8:
      return read<std::int8_t>(place, true);
    case DType::boolean:
      return read<std::uint8_t>(place, true) != 0 ? 1 : 0;
    default:
      return read<std::uint8_t>(place, true);
  }
}

template <>
__device__ std::uint64_t load<std::uint64_t>(const std::byte* place, DType, int, bool aligned) {
  return read<std::uint64_t>(place, aligned);
}

// --- what two elements are to each other -----------------------------------------------------------------------------

enum class Kind { finite, alike, nan_mismatch, inf_mismatch };

struct Seen {
  Kind kind;
  double error;
  double size;  // of the reference
  bool expected_finite;
  bool expected_nonzero;
  bool got_nonzero;
};

__device__ bool take_infinities(double& a, double& b) {
  if (isfinite(a) && isfinite(b)) return true;
  const bool same = a == b;
  a = 0;
  b = 0;
  return same;
}

__device__ Seen look(double expected, double got, bool equal_nan) {
  Seen seen{Kind::finite, 0, 0, isfinite(expected) != 0, expected != 0, got != 0};
  if (isnan(expected) || isnan(got)) {
    seen.kind = equal_nan && isnan(expected) && isnan(got) ? Kind::alike : Kind::nan_mismatch;
    if (seen.expected_finite) seen.size = fabs(expected);
    return seen;
  }
  const bool finite = isfinite(expected) && isfinite(got);
  const double size = seen.expected_finite ? fabs(expected) : 0;
  if (!take_infinities(expected, got)) {
    seen.kind = Kind::inf_mismatch;
  } else {
    seen.kind = finite ? Kind::finite : Kind::alike;
    seen.error = fabs(got - expected);
  }
  seen.size = size;
  return seen;
}

__device__ Seen look(Complex expected, Complex got, bool equal_nan) {
  const bool expected_nan = isnan(expected.real) || isnan(expected.imag);
  const bool got_nan = isnan(got.real) || isnan(got.imag);
  const bool expected_finite = isfinite(expected.real) && isfinite(expected.imag);
  const bool finite = expected_finite && isfinite(got.real) && isfinite(got.imag);
  Seen seen{Kind::finite,
            0,
            expected_finite ? hypot(expected.real, expected.imag) : 0,
            expected_finite,
            expected.real != 0 || expected.imag != 0,
            got.real != 0 || got.imag != 0};
  if (expected_nan || got_nan) {
    seen.kind = equal_nan && expected_nan && got_nan ? Kind::alike : Kind::nan_mismatch;
    return seen;
  }
  const bool real = take_infinities(expected.real, got.real);
  const bool imaginary = take_infinities(expected.imag, got.imag);
  if (!real || !imaginary) {
    seen.kind = Kind::inf_mismatch;
  } else {
    seen.kind = finite ? Kind::finite : Kind::alike;
    seen.error = hypot(got.real - expected.real, got.imag - expected.imag);
    if (!finite) seen.size = hypot(expected.real, expected.imag);
  }
  return seen;
}

template <typename Integer>
__device__ Seen look_exactly(Integer expected, Integer got) {
  const auto high = static_cast<std::uint64_t>(expected > got ? expected : got);
  const auto low = static_cast<std::uint64_t>(expected > got ? got : expected);
  return {Kind::finite, static_cast<double>(high - low), fabs(static_cast<double>(expected)), true, expected != 0,
          got != 0};
}
__device__ Seen look(std::int64_t expected, std::int64_t got, bool) { return look_exactly(expected, got); }
__device__ Seen look(std::uint64_t expected, std::uint64_t got, bool) { return look_exactly(expected, got); }

template <typename Value>
__device__ Seen look_at(const Pair& pair, const Walk& walk, std::int64_t flat) {
  std::int64_t expected = flat * pair.item;
  std::int64_t got = expected;
  if (!walk.contiguous) {
    expected = 0;
    got = 0;
    std::int64_t rest = flat;
    for (int d = walk.dimensions - 1; d >= 0; --d) {
      const std::int64_t index = rest % walk.size[d];
      rest /= walk.size[d];
      expected += index * walk.expected[d];
      got += index * walk.got[d];
    }
  }
  const auto dtype = static_cast<DType>(pair.dtype);
  return look(load<Value>(pair.expected + expected, dtype, pair.item, pair.aligned),
              load<Value>(pair.got + got, dtype, pair.item, pair.aligned), pair.equal_nan);
}

// --- first pass ------------------------------------------------------------------------------------------------------

__device__ void add(Partial& sum, const Partial& more) {
  sum.squared_error += more.squared_error;
  sum.squared_expected += more.squared_expected;
  sum.finite_pairs += more.finite_pairs;
  sum.finite_expected += more.finite_expected;
  sum.flags |= more.flags;
  sum.max_ratio = fmax(sum.max_ratio, more.max_ratio);
  const bool further =
      more.max_error > sum.max_error || (more.max_error == sum.max_error && more.worst >= 0 && more.worst < sum.worst);
  if (more.worst >= 0 && (sum.worst < 0 || further)) {
    sum.max_error = more.max_error;
    sum.worst = more.worst;
  }
}

__device__ void add(Partial& sum, const Seen& seen, std::int64_t flat) {
  if (seen.expected_finite) {
    sum.squared_expected += seen.size * seen.size;
    ++sum.finite_expected;
  }
  if (seen.expected_nonzero) sum.flags |= expected_nonzero;
  if (seen.got_nonzero) sum.flags |= got_nonzero;
  if (seen.kind == Kind::nan_mismatch || seen.kind == Kind::inf_mismatch) {
    sum.flags |= not_alike;
    return;
  }
  if (seen.kind == Kind::finite) {
    sum.squared_error += seen.error * seen.error;
    ++sum.finite_pairs;
  }
  if (seen.error > 0) {
    sum.max_ratio = fmax(sum.max_ratio, seen.size == 0 ? HUGE_VAL : seen.error / seen.size);
  }
  if (seen.error > sum.max_error) {
    sum.max_error = seen.error;
    sum.worst = flat;
  }
}

template <typename Value>
__global__ void __launch_bounds__(threads)
    measure_kernel(const Pair pair, const __grid_constant__ Walk walk, Partial* partials) {
  Partial own;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < pair.elements; i += step) {
    add(own, look_at<Value>(pair, walk, i), i);
  }
  __shared__ char room[threads * sizeof(Partial)];
  auto* const all = reinterpret_cast<Partial*>(room);
  all[threadIdx.x] = own;
  for (int half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) add(all[threadIdx.x], all[threadIdx.x + half]);
  }
  if (threadIdx.x == 0) partials[blockIdx.x] = all[0];
}

// --- second pass -----------------------------------------------------------------------------------------------------

template <typename Value>
__global__ void __launch_bounds__(threads)
    count_kernel(const Pair pair, const __grid_constant__ Walk walk, double rtol, double atol, Mismatches* result) {
  unsigned long long all = 0;
  unsigned long long nan = 0;
  unsigned long long inf = 0;
  unsigned long long first = ~0ULL;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < pair.elements; i += step) {
    const Seen seen = look_at<Value>(pair, walk, i);
    const bool odd = seen.kind == Kind::nan_mismatch || seen.kind == Kind::inf_mismatch;
    // Two roundings, as on the host: a fused product would move the border.
    if (!odd && seen.error <= __dadd_rn(atol, __dmul_rn(rtol, seen.size))) continue;
    ++all;
    nan += seen.kind == Kind::nan_mismatch ? 1 : 0;
    inf += seen.kind == Kind::inf_mismatch ? 1 : 0;
    if (static_cast<unsigned long long>(i) < first) first = static_cast<unsigned long long>(i);
  }
  if (all == 0) return;
  atomicAdd(&result->all, all);
  if (nan > 0) atomicAdd(&result->nan, nan);
  if (inf > 0) atomicAdd(&result->inf, inf);
  atomicMin(&result->first, first);
}

// --- bytes -----------------------------------------------------------------------------------------------------------

__global__ void __launch_bounds__(threads)
    difference_kernel(const uint4* a, const uint4* b, std::uint64_t words, std::uint64_t bytes, int* differ) {
  bool found = false;
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * threads;
  const std::uint64_t own = static_cast<std::uint64_t>(blockIdx.x) * threads + threadIdx.x;
  for (std::uint64_t i = own; i < words; i += step) {
    const uint4 x = a[i];
    const uint4 y = b[i];
    found = found || x.x != y.x || x.y != y.y || x.z != y.z || x.w != y.w;
  }
  const auto* const left = reinterpret_cast<const unsigned char*>(a);
  const auto* const right = reinterpret_cast<const unsigned char*>(b);
  for (std::uint64_t i = words * sizeof(uint4) + own; i < bytes; i += step) found = found || left[i] != right[i];
  if (found) *differ = 1;
}

__global__ void __launch_bounds__(threads) noise_kernel(std::byte* memory, std::uint64_t bytes, std::uint64_t seed) {
  const std::uint64_t words = bytes / 8;
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * threads;
  const std::uint64_t own = static_cast<std::uint64_t>(blockIdx.x) * threads + threadIdx.x;
  for (std::uint64_t i = own; i < words; i += step) {
    std::uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    reinterpret_cast<std::uint64_t*>(memory)[i] = (z ^ (z >> 31)) & 0xBFFFFFFFBFFFFFFFULL;
  }
  for (std::uint64_t i = words * 8 + own; i < bytes; i += step) memory[i] = std::byte{0x3f};
}

int grid_for(std::uint64_t items) {
  const std::uint64_t blocks = (items + threads - 1) / threads;
  return static_cast<int>(blocks < 1 ? 1 : blocks > most_blocks ? most_blocks : blocks);
}

enum class Family { real, complex, integer, large_unsigned };

Family family_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return Family::real;
    case DType::complex128:
    case DType::complex64:
    case DType::complex32:
      return Family::complex;
    case DType::uint64:
      return Family::large_unsigned;
    default:
      return Family::integer;
  }
}

}  // namespace

int blocks_for(std::int64_t elements) { return grid_for(static_cast<std::uint64_t>(elements + 3) / 4); }

cudaError_t measure(const Pair& pair, const Walk& walk, Partial* partials, cudaStream_t stream) {
  const int blocks = blocks_for(pair.elements);
  switch (family_of(static_cast<DType>(pair.dtype))) {
    case Family::real:
      measure_kernel<double><<<blocks, threads, 0, stream>>>(pair, walk, partials);
      break;
    case Family::complex:
      measure_kernel<Complex><<<blocks, threads, 0, stream>>>(pair, walk, partials);
      break;
    case Family::integer:
      measure_kernel<std::int64_t><<<blocks, threads, 0, stream>>>(pair, walk, partials);
      break;
    case Family::large_unsigned:
      measure_kernel<std::uint64_t><<<blocks, threads, 0, stream>>>(pair, walk, partials);
      break;
  }
  return cudaGetLastError();
}

cudaError_t count_mismatches(const Pair& pair, const Walk& walk, double rtol, double atol, Mismatches* result,
                             cudaStream_t stream) {
  const int blocks = blocks_for(pair.elements);
  switch (family_of(static_cast<DType>(pair.dtype))) {
    case Family::real:
      count_kernel<double><<<blocks, threads, 0, stream>>>(pair, walk, rtol, atol, result);
      break;
    case Family::complex:
      count_kernel<Complex><<<blocks, threads, 0, stream>>>(pair, walk, rtol, atol, result);
      break;
    case Family::integer:
      count_kernel<std::int64_t><<<blocks, threads, 0, stream>>>(pair, walk, rtol, atol, result);
      break;
    case Family::large_unsigned:
      count_kernel<std::uint64_t><<<blocks, threads, 0, stream>>>(pair, walk, rtol, atol, result);
      break;
  }
  return cudaGetLastError();
}

cudaError_t find_difference(const std::byte* a, const std::byte* b, std::uint64_t bytes, int* differ,
                            cudaStream_t stream) {
  const bool wide = reinterpret_cast<std::uintptr_t>(a) % 16 == 0 && reinterpret_cast<std::uintptr_t>(b) % 16 == 0;
  const std::uint64_t words = wide ? bytes / sizeof(uint4) : 0;
  difference_kernel<<<grid_for(wide ? words : bytes), threads, 0, stream>>>(
      reinterpret_cast<const uint4*>(a), reinterpret_cast<const uint4*>(b), words, bytes, differ);
  return cudaGetLastError();
}

cudaError_t fill_with_noise(std::byte* memory, std::uint64_t bytes, std::uint64_t seed, cudaStream_t stream) {
  noise_kernel<<<grid_for(bytes / 8), threads, 0, stream>>>(memory, bytes, seed);
  return cudaGetLastError();
}

}  // namespace cuda_agent::device::kernels
