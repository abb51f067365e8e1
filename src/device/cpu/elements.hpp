// What one stored element of each dtype is as a number. `Value` is the type in which it is compared: float holds every
// 8- and 16-bit format exactly.
#pragma once

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "device/tensor_layout.hpp"

namespace cuda_agent::device::elements {

template <typename Stored>
Stored read(const std::byte* place) {
  Stored stored;
  std::memcpy(&stored, place, sizeof stored);  // arenas hold tensors at any offset
  return stored;
}

/// IEEE binary16. The product scales the exponent and normalises subnormals; it is exact.
inline float from_half(std::uint16_t half) {
  const std::uint32_t magnitude = (half & 0x7fffU) << 13U;
  const std::uint32_t sign = (half & 0x8000U) << 16U;
  const std::uint32_t special = magnitude >= 0x0f800000U ? 0x7f800000U : 0U;  // infinities and NaN
  const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  return std::bit_cast<float>(scaled | special | sign);
}

inline float from_bfloat16(std::uint16_t stored) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(stored) << 16U);
}

/// 1 sign, 4 exponent (bias 7) and 3 mantissa bits; no infinities, NaN is S.1111.111 (OCP 8-bit formats).
inline float from_e4m3fn(std::uint8_t stored) {
  const std::uint32_t magnitude = stored & 0x7fU;
  const float sign = (stored & 0x80U) != 0 ? -1.0F : 1.0F;
  if (magnitude == 0x7fU) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  return sign * (std::bit_cast<float>(magnitude << 20U) * 0x1p120F);
}

/// 1 sign, 5 exponent and 2 mantissa bits: the upper byte of a binary16.
inline float from_e5m2(std::uint8_t stored) { return from_half(static_cast<std::uint16_t>(stored << 8U)); }

template <typename Number, typename As>
struct Plain {
  using Value = As;
  static constexpr std::size_t size = sizeof(Number);
  static constexpr bool direct = std::is_same_v<Number, As>;  ///< stored as it is compared
  static Value load(const std::byte* place) { return static_cast<Value>(read<Number>(place)); }
};

template <typename Stored, float (*Decode)(Stored)>
struct Encoded {
  using Value = float;
  static constexpr std::size_t size = sizeof(Stored);
  static constexpr bool direct = false;
  static Value load(const std::byte* place) { return Decode(read<Stored>(place)); }
};

template <typename Part>
struct Complex {
  using Value = std::complex<double>;
  static constexpr std::size_t size = 2 * Part::size;
  static constexpr bool direct = false;
  static Value load(const std::byte* place) {
    return {static_cast<double>(Part::load(place)), static_cast<double>(Part::load(place + Part::size))};
  }
};

/// torch stores a bool in a byte. Any byte but 0 counts as true.
struct Boolean {
  using Value = std::int64_t;
  static constexpr std::size_t size = 1;
  static constexpr bool direct = false;
  static Value load(const std::byte* place) { return *place != std::byte{0} ? 1 : 0; }
};

using Float16 = Encoded<std::uint16_t, from_half>;
using Float32 = Plain<float, float>;
using Float64 = Plain<double, double>;

/// Calls `use(element)` with the element type of `dtype` and returns what it returns.
template <typename Use>
auto with_element(DType dtype, Use&& use) {
  switch (dtype) {
    case DType::float64:
      return std::forward<Use>(use)(Float64{});
    case DType::float32:
      return std::forward<Use>(use)(Float32{});
    case DType::float16:
      return std::forward<Use>(use)(Float16{});
    case DType::bfloat16:
      return std::forward<Use>(use)(Encoded<std::uint16_t, from_bfloat16>{});
    case DType::float8_e4m3fn:
      return std::forward<Use>(use)(Encoded<std::uint8_t, from_e4m3fn>{});
    case DType::float8_e5m2:
      return std::forward<Use>(use)(Encoded<std::uint8_t, from_e5m2>{});
    case DType::complex128:
      return std::forward<Use>(use)(Complex<Float64>{});
    case DType::complex64:
      return std::forward<Use>(use)(Complex<Float32>{});
    case DType::complex32:
      return std::forward<Use>(use)(Complex<Float16>{});
    case DType::int64:
      return std::forward<Use>(use)(Plain<std::int64_t, std::int64_t>{});
    case DType::int32:
      return std::forward<Use>(use)(Plain<std::int32_t, std::int64_t>{});
    case DType::int16:
      return std::forward<Use>(use)(Plain<std::int16_t, std::int64_t>{});
    case DType::int8:
      return std::forward<Use>(use)(Plain<std::int8_t, std::int64_t>{});
    case DType::uint8:
      return std::forward<Use>(use)(Plain<std::uint8_t, std::int64_t>{});
    case DType::uint16:
      return std::forward<Use>(use)(Plain<std::uint16_t, std::int64_t>{});
    case DType::uint32:
      return std::forward<Use>(use)(Plain<std::uint32_t, std::int64_t>{});
    case DType::uint64:
      return std::forward<Use>(use)(Plain<std::uint64_t, std::uint64_t>{});
    case DType::boolean:
      return std::forward<Use>(use)(Boolean{});
  }
  throw std::invalid_argument("a DType outside of the enumeration");
}

}  // namespace cuda_agent::device::elements
