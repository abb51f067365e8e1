#include "selftest/gain.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::selftest {

namespace {

Answer timed(double low, double estimate) {
  Answer answer;
  answer.speedup = Speedup{low, estimate};
  return answer;
}

}  // namespace

TEST(Gain, OneRatioIsEnoughWhereItIsNotTooHigh) {
  Gain gain(Bound::at_most, 1.25);
  gain.add(timed(0.9, 1.2));
  EXPECT_FALSE(gain.is_open());
  EXPECT_FALSE(gain.problem());
}

TEST(Gain, OneRatioIsEnoughWhereItIsSurelyTooHigh) {
  Gain gain(Bound::at_most, 1.25);
  gain.add(timed(2.5, 3));
  EXPECT_FALSE(gain.is_open());
  EXPECT_EQ(gain.problem(), "3.00x eager, expected 1.25 at most");
}

TEST(Gain, ThreeRatiosDecideWhereOneMayBeChance) {
  Gain gain(Bound::at_most, 1.25);
  gain.add(timed(1.1, 1.4));
  EXPECT_TRUE(gain.is_open());
  gain.add(timed(0.9, 1.0));
  EXPECT_TRUE(gain.is_open());
  auto worse = gain;
  gain.add(timed(0.9, 1.1));
  EXPECT_FALSE(gain.is_open());
  EXPECT_FALSE(gain.problem());
  worse.add(timed(1.1, 1.3));
  EXPECT_FALSE(worse.is_open());
  EXPECT_EQ(worse.problem(), "1.40, 1.00, 1.30x eager, expected 1.25 at most");
}

TEST(Gain, WhatMustGainIsSeenToSurelyOrInTwoOfThreeAsks) {
  Gain gain(Bound::more_than, 1.25);
  gain.add(timed(2.5, 3));
  EXPECT_FALSE(gain.is_open());
  EXPECT_FALSE(gain.problem());
  Gain noisy(Bound::more_than, 1.25);
  noisy.add(timed(0.5, 3));
  EXPECT_TRUE(noisy.is_open()) << "it may be chance";
  noisy.add(timed(0.5, 1));
  EXPECT_TRUE(noisy.is_open());
  auto none = noisy;
  noisy.add(timed(0.5, 2));
  EXPECT_FALSE(noisy.problem());
  EXPECT_EQ(noisy.median(), 2);
  none.add(timed(0.5, 1.25));
  EXPECT_FALSE(none.is_open());
  EXPECT_EQ(none.problem(), "3.00, 1.00, 1.25x eager, expected more than 1.25");
}

TEST(Gain, WhatWasNotTimedIsWrong) {
  Gain gain(Bound::at_most, 1.25);
  gain.add({});
  EXPECT_FALSE(gain.median());
  EXPECT_FALSE(gain.is_open());
  EXPECT_TRUE(gain.problem());
}

}  // namespace cuda_agent::selftest
