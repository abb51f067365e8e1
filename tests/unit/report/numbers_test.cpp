#include "report/numbers.hpp"

#include <cmath>

#include <gtest/gtest.h>

namespace cuda_agent::report {

TEST(Numbers, DurationsTakeTheUnitThatKeepsThemShort) {
  EXPECT_EQ(duration_text(0.25), "250 ns");
  EXPECT_EQ(duration_text(12.34), "12.3 µs");
  EXPECT_EQ(duration_text(4567), "4.57 ms");
  EXPECT_EQ(duration_text(2.5e6), "2.50 s");
}

TEST(Numbers, ARangeHasOneUnit) { EXPECT_EQ(duration_range_text(990, 1010), "0.99 – 1.01 ms"); }

TEST(Numbers, RatiosNearOneShowMoreDigits) {
  EXPECT_EQ(ratio_text(1.0123), "1.012x");
  EXPECT_EQ(ratio_text(2.3456), "2.35x");
  EXPECT_EQ(ratio_text(0.5), "0.50x");
}

TEST(Numbers, ErrorsThatAreNoNumbersHaveAName) {
  EXPECT_EQ(error_text(std::nan("")), "NaN");
  EXPECT_EQ(error_text(1.23e-7), "1.2e-07");
}

}  // namespace cuda_agent::report
