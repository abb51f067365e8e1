#include "judge/profile.hpp"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace cuda_agent::judge {
namespace {

constexpr std::uint64_t plenty = std::uint64_t{256} << 20;

Overheads quiet() {
  Overheads overheads;
  overheads.channels = {3, 16, 270, 270};
  return overheads;
}

TEST(WithoutNull, TakesTheNullOffAndDividesByTheCalls) {
  EXPECT_NEAR(without_null(106, 3, {6, 3, true, 0}, 4), 25, 1e-9);
}

TEST(WithoutNull, CountsWorkThatFollowsTheFirstAnswer) {
  // 500 µs hidden behind a forged first answer: all but 2 µs and 1 % of the null's tail come back.
  EXPECT_NEAR(without_null(6, 500 + 3, {6, 3, true, 0}, 1), 500 - 2 - 0.03, 1e-9);
}

TEST(WithoutNull, IsNeverNothing) { EXPECT_GT(without_null(5, 3, {6, 3, true, 0}, 1), 0); }

TEST(CallsFor, AreManyForAShortModelAndOneForALongOne) {
  EXPECT_EQ(calls_for(10 + 6, 6, 1, plenty), 20);
  EXPECT_EQ(calls_for(1000, 6, 1, plenty), 1);
}

TEST(CallsFor, AreBoundedByMemoryAndNeverNone) {
  EXPECT_LT(calls_for(10, 6, std::uint64_t{100} << 20, plenty), 3);
  EXPECT_EQ(calls_for(10, 6, std::uint64_t{8} << 30, plenty), 1);
  EXPECT_LE(calls_for(6, 6, 1, plenty), 64);
}

TEST(BetweenProcesses, IsPlacementAloneWhereNullsAreSteadyAndChannelsAlike) {
  EXPECT_NEAR(between_processes(quiet(), device::CallMode::gated, 200, 100), 0.007, 1e-12);
}

TEST(BetweenProcesses, GrowsWithTheNullsSpreadAndShrinksWithTheSpan) {
  Overheads overheads = quiet();
  overheads.reference.gated.spread = 0.6;
  overheads.candidate.gated.spread = 0.4;
  EXPECT_NEAR(between_processes(overheads, device::CallMode::gated, 10, 0), 0.1, 1e-3);
  EXPECT_LT(between_processes(overheads, device::CallMode::gated, 1000, 0), 0.0072);
}

TEST(BetweenProcesses, TakesTheNullsOfTheWayOfTimingThatWasUsed) {
  Overheads overheads = quiet();
  overheads.candidate.end_to_end.spread = 20;
  EXPECT_NEAR(between_processes(overheads, device::CallMode::gated, 200, 0), 0.007, 1e-12);
  EXPECT_NEAR(between_processes(overheads, device::CallMode::end_to_end, 200, 0), 0.1, 1e-3);
}

TEST(BetweenProcesses, CountsTheDifferenceOfTheChannelsForEachLaunch) {
  Overheads overheads = quiet();
  overheads.channels.candidate = 290;  // 0.1 µs a launch
  // 200 launches at most in 400 µs of enqueuing: 20 µs of 1000.
  EXPECT_NEAR(between_processes(overheads, device::CallMode::gated, 1000, 400), 0.0212, 1e-4);
}

TEST(BetweenProcesses, IsFiniteForASpanOfNothing) {
  EXPECT_TRUE(std::isfinite(between_processes(quiet(), device::CallMode::gated, 0, 100)));
}

}  // namespace
}  // namespace cuda_agent::judge
