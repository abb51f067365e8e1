#include "judge/device_state.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::judge {
namespace {

TEST(DeviceState, TheJudgesOwnProcessesAndAnIdleClockAreNoDisturbance) {
  EXPECT_TRUE(disturbances({}).empty());
  EXPECT_TRUE(disturbances({{"device.processes", "3"}, {"device.throttle_reasons", "0x1"}}).empty());
}

TEST(DeviceState, OtherProgramsAreCounted) {
  EXPECT_EQ(disturbances({{"device.processes", "5"}}), std::vector<std::string>{"2 other programs have the GPU open"});
}

TEST(DeviceState, AClockThatWasHeldDownIsNamedWithTheReason) {
  for (char const* const reason : {"0x4", "0x8", "0x20", "0x40", "0x80", "0x5"}) {
    auto const found = disturbances({{"device.throttle_reasons", reason}});
    ASSERT_EQ(found.size(), 1U) << reason;
    EXPECT_NE(found.front().find(reason), std::string::npos);
  }
}

}  // namespace
}  // namespace cuda_agent::judge
