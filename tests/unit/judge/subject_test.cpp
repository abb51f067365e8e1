#include "judge/subject.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::judge {
namespace {

nlohmann::json task() {
  return {{"init", {{"trees", nlohmann::json::array()}, {"bytes", 512}}},
          {"state", {{"names", {"weight"}}, {"bytes", 4096}}},
          {"signature", "(scale)"}};
}

TEST(Subject, TellsWhatTheTaskIsAndNothingOfTheSeedItself) {
  auto const subject = subject_of(task(), "/candidate", 77, Contract::cuda_agent);
  ASSERT_TRUE(subject) << subject.error().message;
  EXPECT_EQ(subject->init_bytes, 512U);
  EXPECT_EQ(subject->state_bytes, 4096U);
  EXPECT_EQ(subject->load["folder"], "/candidate");
  EXPECT_EQ(subject->load["signature"], "(scale)");
  EXPECT_TRUE(subject->load["eval"]);
  EXPECT_NE(subject->load["seed"], 77);
  EXPECT_EQ(subject->weights["state"]["names"][0], "weight");
}

TEST(Subject, ForKernelBenchBothSidesDrawTheirWeightsUnderOneSeed) {
  auto const subject = subject_of(task(), "/candidate", 77, Contract::kernelbench);
  ASSERT_TRUE(subject);
  EXPECT_TRUE(subject->weights.is_null());
  EXPECT_FALSE(subject->load["eval"]);
}

TEST(Subject, ADescriptionOfAnotherFormIsOurError) {
  for (char const* const key : {"init", "state", "signature"}) {
    auto broken = task();
    broken.erase(key);
    auto const subject = subject_of(broken, "/candidate", 77, Contract::cuda_agent);
    ASSERT_FALSE(subject) << key;
    EXPECT_EQ(subject.error().outcome, Outcome::internal_error);
  }
}

}  // namespace
}  // namespace cuda_agent::judge
