// The inner loops of the comparison for float and double, written with vector types so that they are fast in every
// build: they run over whole outputs after each timed call.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace cuda_agent::device {

// 16 bytes: registers of this size exist on every 64-bit machine; wider types would be split by way of memory.
template <typename T>
struct Lanes;

template <>
struct Lanes<float> {
  static constexpr std::int64_t count = 4;
  typedef float Vector __attribute__((vector_size(16)));
  typedef std::int32_t Mask __attribute__((vector_size(16)));
  static constexpr std::int32_t magnitude_bits = 0x7fffffff;
};

template <>
struct Lanes<double> {
  static constexpr std::int64_t count = 2;
  typedef double Vector __attribute__((vector_size(16)));
  typedef std::int64_t Mask __attribute__((vector_size(16)));
  static constexpr std::int64_t magnitude_bits = 0x7fffffffffffffff;
};

/// |v| lane by lane.
template <typename T>
typename Lanes<T>::Vector magnitudes(typename Lanes<T>::Vector v) {
  using Mask = typename Lanes<T>::Mask;
  return __builtin_bit_cast(typename Lanes<T>::Vector, __builtin_bit_cast(Mask, v) & Lanes<T>::magnitude_bits);
}

template <typename T>
typename Lanes<T>::Vector load_lanes(const T* place) {
  typename Lanes<T>::Vector v;
  std::memcpy(&v, place, sizeof v);
  return v;
}

template <typename T>
struct BlockStatistics {
  double squared_error = 0;     ///< not finite when any element of the block is not, or a square does not fit T
  double squared_expected = 0;  ///< likewise
  T max_error = 0;
  bool above_ratio = false;  ///< some error / |expected| is above the ratio given
};

/// Adds `count` elements, of which T's own arithmetic may take the sums: few enough that rounding stays below 1e-5.
template <typename T>
void measure_piece(const T* expected, const T* got, std::int64_t count, T ratio, BlockStatistics<T>& sums) {
  using L = Lanes<T>;
  typename L::Vector squared_error{};
  typename L::Vector squared_expected{};
  typename L::Vector max_error{};
  typename L::Mask above{};
  std::int64_t i = 0;
  for (; i + L::count <= count; i += L::count) {
    const auto reference = load_lanes<T>(expected + i);
    const auto error = magnitudes<T>(load_lanes<T>(got + i) - reference);
    squared_error += error * error;
    squared_expected += reference * reference;
    max_error = error > max_error ? error : max_error;
    above |= error > magnitudes<T>(reference) * ratio;
  }
  for (std::int64_t lane = 0; lane < L::count; ++lane) {
    sums.squared_error += static_cast<double>(squared_error[lane]);
    sums.squared_expected += static_cast<double>(squared_expected[lane]);
    sums.max_error = max_error[lane] > sums.max_error ? max_error[lane] : sums.max_error;
    sums.above_ratio = sums.above_ratio || above[lane] != 0;
  }
  for (; i < count; ++i) {
    const T error = std::abs(got[i] - expected[i]);
    sums.squared_error += static_cast<double>(error * error);
    sums.squared_expected += static_cast<double>(expected[i] * expected[i]);
    sums.max_error = error > sums.max_error ? error : sums.max_error;
    sums.above_ratio = sums.above_ratio || error > std::abs(expected[i]) * ratio;
  }
}

/// One pass over a block.
template <typename T>
BlockStatistics<T> measure_block(const T* expected, const T* got, std::int64_t count, T ratio) {
  constexpr std::int64_t piece = 256;
  BlockStatistics<T> sums;
  for (std::int64_t first = 0; first < count; first += piece) {
    measure_piece<T>(expected + first, got + first, std::min(piece, count - first), ratio, sums);
  }
  return sums;
}

/// Whether every error is at most atol + rtol · |expected|, in T's arithmetic. False as soon as an element is not
/// finite.
template <typename T>
bool block_within(const T* expected, const T* got, std::int64_t count, T rtol, T atol) {
  using L = Lanes<T>;
  constexpr T largest = std::numeric_limits<T>::max();  // no infinity and no NaN is at most this
  typename L::Mask outside{};
  std::int64_t i = 0;
  for (; i + L::count <= count; i += L::count) {
    const auto reference = load_lanes<T>(expected + i);
    const auto error = magnitudes<T>(load_lanes<T>(got + i) - reference);
    const auto size = magnitudes<T>(reference);
    outside |= ~((error <= size * rtol + atol) & (size <= largest) & (error <= largest));
  }
  bool within = true;
  for (std::int64_t lane = 0; lane < L::count; ++lane) {
    within = within && outside[lane] == 0;
  }
  for (; i < count; ++i) {
    const T error = std::abs(got[i] - expected[i]);
    within =
        within && std::isfinite(expected[i]) && std::isfinite(error) && error <= std::abs(expected[i]) * rtol + atol;
  }
  return within;
}

}  // namespace cuda_agent::device
