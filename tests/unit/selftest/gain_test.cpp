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
  Gain gain(1.25);
  gain.add(timed(0.9, 1.2));
  EXPECT_FALSE(gain.is_open());
  EXPECT_FALSE(gain.problem());
}

TEST(Gain, OneRatioIsEnoughWhereItIsSurelyTooHigh) {
  Gain gain(1.25);
  gain.add(timed(2.5, 3));
  EXPECT_FALSE(gain.is_open());
  EXPECT_EQ(gain.problem(), "3.00x eager, expected 1.25 at most");
}

TEST(Gain, ThreeRatiosDecideWhereOneMayBeChance) {
  Gain gain(1.25);
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

TEST(Gain, WhatWasNotTimedIsWrong) {
  Gain gain(1.25);
  gain.add({});
  EXPECT_FALSE(gain.is_open());
  EXPECT_TRUE(gain.problem());
}

}  // namespace cuda_agent::selftest
