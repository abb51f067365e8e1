// The inner loops of the comparison for float and double, written with vector types so that they are fast in every
// build: they run over whole outputs after each timed call.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace cuda_agent::device {

template <typename T>
struct Lanes;

template <>
struct Lanes<float> {
  static constexpr std::int64_t count = 8;
  typedef float Vector __attribute__((vector_size(32)));
  typedef std::int32_t Mask __attribute__((vector_size(32)));
  typedef double Wide __attribute__((vector_size(64)));
  static constexpr std::int32_t magnitude_bits = 0x7fffffff;
};

template <>
struct Lanes<double> {
  static constexpr std::int64_t count = 4;
  typedef double Vector __attribute__((vector_size(32)));
  typedef std::int64_t Mask __attribute__((vector_size(32)));
  typedef double Wide __attribute__((vector_size(32)));
  static constexpr std::int64_t magnitude_bits = 0x7fffffffffffffff;
};

/// |v| lane by lane. By reference: vectors wider than the target's registers have no stable calling convention.
template <typename T>
void drop_signs(typename Lanes<T>::Vector& v) {
  using Mask = typename Lanes<T>::Mask;
  v = __builtin_bit_cast(typename Lanes<T>::Vector, __builtin_bit_cast(Mask, v) & Lanes<T>::magnitude_bits);
}

template <typename T>
struct BlockStatistics {
  double squared_error = 0;     ///< not finite when any element of the block is not
  double squared_expected = 0;  ///< likewise
  T max_error = 0;
  bool above_ratio = false;  ///< some error / |expected| is above the ratio given
};

/// One pass over a block.
template <typename T>
BlockStatistics<T> measure_block(const T* expected, const T* got, std::int64_t count, T ratio) {
  using L = Lanes<T>;
  using Vector = typename L::Vector;
  using Mask = typename L::Mask;
  using Wide = typename L::Wide;
  Wide squared_error{};
  Wide squared_expected{};
  Vector max_error{};
  Mask above{};
  std::int64_t i = 0;
  for (; i + L::count <= count; i += L::count) {
    Vector reference;
    Vector result;
    std::memcpy(&reference, expected + i, sizeof reference);
    std::memcpy(&result, got + i, sizeof result);
    Vector error = result - reference;
    Vector size = reference;
    drop_signs<T>(error);
    drop_signs<T>(size);
    const Wide wide_error = __builtin_convertvector(error, Wide);
    const Wide wide_reference = __builtin_convertvector(reference, Wide);
    squared_error += wide_error * wide_error;
    squared_expected += wide_reference * wide_reference;
    max_error = error > max_error ? error : max_error;
    above |= error > size * ratio;
  }
  BlockStatistics<T> sums;
  for (std::int64_t lane = 0; lane < L::count; ++lane) {
    sums.squared_error += squared_error[lane];
    sums.squared_expected += squared_expected[lane];
    sums.max_error = max_error[lane] > sums.max_error ? max_error[lane] : sums.max_error;
    sums.above_ratio = sums.above_ratio || above[lane] != 0;
  }
  for (; i < count; ++i) {
    const T error = std::abs(got[i] - expected[i]);
    sums.squared_error += static_cast<double>(error) * static_cast<double>(error);
    sums.squared_expected += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
    sums.max_error = error > sums.max_error ? error : sums.max_error;
    sums.above_ratio = sums.above_ratio || error > std::abs(expected[i]) * ratio;
  }
  return sums;
}

/// Whether every error is at most atol + rtol · |expected|, in T's arithmetic. False as soon as an element is not
/// finite.
template <typename T>
bool block_within(const T* expected, const T* got, std::int64_t count, T rtol, T atol) {
  using L = Lanes<T>;
  using Vector = typename L::Vector;
  using Mask = typename L::Mask;
  Mask outside{};
  std::int64_t i = 0;
  for (; i + L::count <= count; i += L::count) {
    Vector reference;
    Vector result;
    std::memcpy(&reference, expected + i, sizeof reference);
    std::memcpy(&result, got + i, sizeof result);
    Vector error = result - reference;
    Vector size = reference;
    drop_signs<T>(error);
    drop_signs<T>(size);
    // x − x is 0 for every finite x and for no other.
    outside |= ~((error <= size * rtol + atol) & (size - size == 0) & (error - error == 0));
  }
  bool within = true;
  for (std::int64_t lane = 0; lane < L::count; ++lane) {
    within = within && outside[lane] == 0;
  }
  for (; i < count; ++i) {
    within =
        within && std::isfinite(expected[i]) && std::abs(got[i] - expected[i]) <= std::abs(expected[i]) * rtol + atol;
  }
  return within;
}

}  // namespace cuda_agent::device
