#include "device/cpu/elements.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace cuda_agent::device::elements {
namespace {

/// A format with subnormals, by its definition.
double decode(unsigned bits, int exponent_bits, int mantissa_bits) {
  const double sign = ((bits >> static_cast<unsigned>(exponent_bits + mantissa_bits)) & 1U) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> static_cast<unsigned>(mantissa_bits)) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  if (exponent == 0) {
    return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  }
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

bool same(double expected, float got) {
  return static_cast<double>(got) == expected && std::signbit(expected) == std::signbit(got);
}

TEST(Elements, EveryHalfIsDecoded) {
  for (unsigned bits = 0; bits < 0x10000U; ++bits) {
    const float got = from_half(static_cast<std::uint16_t>(bits));
    if ((bits & 0x7c00U) == 0x7c00U) {
      EXPECT_EQ(std::isinf(got), (bits & 0x3ffU) == 0) << bits;
      EXPECT_EQ(std::isnan(got), (bits & 0x3ffU) != 0) << bits;
      EXPECT_EQ(std::signbit(got), (bits & 0x8000U) != 0) << bits;
    } else {
      EXPECT_TRUE(same(decode(bits, 5, 10), got)) << bits << " " << got;
    }
  }
}

TEST(Elements, EveryBfloat16IsDecoded) {
  for (unsigned bits = 0; bits < 0x10000U; ++bits) {
    const float got = from_bfloat16(static_cast<std::uint16_t>(bits));
    if ((bits & 0x7f80U) == 0x7f80U) {
      EXPECT_FALSE(std::isfinite(got)) << bits;
    } else {
      EXPECT_TRUE(same(decode(bits, 8, 7), got)) << bits << " " << got;
    }
  }
}

TEST(Elements, EveryFloat8IsDecoded) {
  for (unsigned bits = 0; bits < 0x100U; ++bits) {
    const auto stored = static_cast<std::uint8_t>(bits);
    if ((bits & 0x7fU) == 0x7fU) {
      EXPECT_TRUE(std::isnan(from_e4m3fn(stored))) << bits;
    } else {
      EXPECT_TRUE(same(decode(bits, 4, 3), from_e4m3fn(stored))) << bits << " " << from_e4m3fn(stored);
    }
    if ((bits & 0x7cU) == 0x7cU) {
      EXPECT_EQ(std::isinf(from_e5m2(stored)), (bits & 3U) == 0) << bits;
    } else {
      EXPECT_TRUE(same(decode(bits, 5, 2), from_e5m2(stored))) << bits << " " << from_e5m2(stored);
    }
  }
  EXPECT_EQ(from_e4m3fn(0x7e), 448.0F);
  EXPECT_EQ(from_e5m2(0x7b), 57344.0F);
}

}  // namespace
}  // namespace cuda_agent::device::elements
