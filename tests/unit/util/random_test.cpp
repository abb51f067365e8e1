#include "util/random.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace cuda_agent::util {
namespace {

static_assert(std::uniform_random_bit_generator<SplitMix64>);

TEST(SplitMix64, GivesThePublishedSequence) {
  SplitMix64 random(1234567);
  EXPECT_EQ(random(), 6457827717110365317U);
  EXPECT_EQ(random(), 3203168211198807973U);
  EXPECT_EQ(random(), 9817491932198370423U);
}

TEST(SplitMix64, UniformStaysInItsRangeAroundOneHalf) {
  SplitMix64 random(1);
  double sum = 0;
  for (int i = 0; i < 100000; ++i) {
    double const x = random.uniform();
    ASSERT_GE(x, 0.0);
    ASSERT_LT(x, 1.0);
    sum += x;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.01);
}

TEST(SplitMix64, BelowReachesEveryValueEquallyOften) {
  SplitMix64 random(2);
  std::array<int, 6> counts{};
  for (int i = 0; i < 60000; ++i) ++counts.at(random.below(6));
  for (int const count : counts) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(random.below(0), 0U);
  EXPECT_EQ(random.below(1), 0U);
}

TEST(DerivedSeed, IsTheSameForTheSameSeedAndAnotherForEveryPurpose) {
  EXPECT_EQ(derived_seed("inputs", 7), derived_seed("inputs", 7));
  EXPECT_NE(derived_seed("inputs", 7), derived_seed("call", 7));
  EXPECT_NE(derived_seed("inputs", 7), derived_seed("inputs", 8));
  EXPECT_LT(derived_seed("inputs", 7), std::uint64_t{1} << 63U);
}

// What a candidate is told must not lead to the seed, nor to the sequence that comes after it.
TEST(DerivedSeed, ShowsNothingOfTheSeed) {
  for (std::uint64_t seed = 1; seed < 1000; ++seed) {
    auto const told = derived_seed("constructor", seed);
    EXPECT_NE(told, seed >> 1U);
    EXPECT_NE(told, SplitMix64(seed)() >> 1U);
    EXPECT_NE(told, SplitMix64(seed)());
  }
}

TEST(RandomU64, DoesNotRepeat) { EXPECT_NE(random_u64(), random_u64()); }

}  // namespace
}  // namespace cuda_agent::util
