#include "judge/grade.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::judge {
namespace {

Verdict ask(Interval eager, Interval compiled, const char* seed = "1") {
  Verdict verdict;
  verdict.command = "run";
  verdict.seed = seed;
  verdict.reward.value = 3;
  verdict.speed.emplace();
  verdict.speed->ratios = {{"eager", eager, 0.995}, {"compiled", compiled, 0.995}};
  verdict.correctness.emplace();
  verdict.protections = {{"network", true, "none"}};
  return verdict;
}

TEST(Grade, GivesTheFinalRewardWhenAllAsksAgree) {
  auto const verdict =
      combine_grade({ask({2.0, 1.9, 2.1}, {1.3, 1.2, 1.4}, "1"), ask({2.01, 1.92, 2.1}, {1.31, 1.21, 1.4}, "2"),
                     ask({1.99, 1.9, 2.1}, {1.29, 1.2, 1.4}, "3")});
  EXPECT_EQ(verdict.command, "grade");
  EXPECT_EQ(verdict.outcome, Outcome::pass);
  EXPECT_EQ(verdict.reward.value, 3);
  EXPECT_TRUE(verdict.reward.final);
  ASSERT_TRUE(verdict.grade);
  ASSERT_EQ(verdict.grade->runs.size(), 3U);
  EXPECT_EQ(verdict.grade->runs[2].seed, "3");
  EXPECT_DOUBLE_EQ(verdict.grade->ratios.at(0).ratio.estimate, 2.0);
  EXPECT_EQ(verdict.reward.reason.find("unstable"), std::string::npos);
}

TEST(Grade, OneLuckyAskGainsNothing) {
  auto const verdict = combine_grade({ask({1.2, 1.1, 1.3}, {1.2, 1.1, 1.3}), ask({1.02, 1.01, 1.03}, {1.2, 1.1, 1.3}),
                                      ask({1.2, 1.1, 1.3}, {1.2, 1.1, 1.3})});
  EXPECT_EQ(verdict.reward.value, 1);
  EXPECT_DOUBLE_EQ(verdict.grade->ratios.at(0).ratio.low, 1.01);
  EXPECT_DOUBLE_EQ(verdict.grade->ratios.at(0).ratio.high, 1.3);
}

TEST(Grade, LessPrecisionInOneAskGivesOneAtTheMost) {
  auto asks = std::vector<Verdict>(3, ask({2.0, 1.9, 2.1}, {1.3, 1.2, 1.4}));
  asks[1].correctness->precision.emplace().lower = true;
  EXPECT_EQ(combine_grade(asks).reward.value, 1);
  asks[1].correctness->precision->lower = false;
  EXPECT_EQ(combine_grade(asks).reward.value, 3);
}

TEST(Grade, AsksThatDifferAreUnstable) {
  auto const verdict = combine_grade({ask({1.5, 1.4, 1.6}, {1.5, 1.4, 1.6}), ask({1.54, 1.4, 1.6}, {1.5, 1.4, 1.6}),
                                      ask({1.5, 1.4, 1.6}, {1.5, 1.4, 1.6})});
  EXPECT_NEAR(verdict.grade->ratios.at(0).spread, 1.54 / 1.5 - 1, 1e-12);
  EXPECT_NE(verdict.reward.reason.find("unstable"), std::string::npos);
}

TEST(Grade, ABaselineThatOneAskLeftOutIsNotBeaten) {
  auto second = ask({2, 1.9, 2.1}, {1.3, 1.2, 1.4});
  second.speed->ratios.pop_back();
  auto const verdict =
      combine_grade({ask({2, 1.9, 2.1}, {1.3, 1.2, 1.4}), second, ask({2, 1.9, 2.1}, {1.3, 1.2, 1.4})});
  EXPECT_EQ(verdict.reward.value, 2);
}

TEST(Grade, EndsWithTheAskThatFailed) {
  auto wrong = ask({2, 1.9, 2.1}, {1.3, 1.2, 1.4});
  set_failure(wrong, Error(Outcome::wrong, "trial 3 of 5: the result differs"));
  wrong.speed.reset();
  auto const verdict = combine_grade({ask({2, 1.9, 2.1}, {1.3, 1.2, 1.4}), wrong});
  EXPECT_EQ(verdict.outcome, Outcome::wrong);
  EXPECT_EQ(verdict.reward.value, -1);
  EXPECT_TRUE(verdict.reward.final);
  EXPECT_NE(verdict.message.find("ask 2 of 3: trial 3 of 5"), std::string::npos);
}

TEST(Grade, ACorrectOneThatIsSlowerThanDemandedKeepsItsReward) {
  auto slow = ask({2, 1.9, 2.1}, {1.3, 1.2, 1.4});
  set_failure(slow, Error(Outcome::slow, "2.00x eager; --require-speedup asks for 3"));
  auto const right = ask({2, 1.9, 2.1}, {1.3, 1.2, 1.4});
  auto const verdict = combine_grade({slow, right, right});
  EXPECT_EQ(verdict.outcome, Outcome::slow);
  EXPECT_EQ(verdict.reward.value, 3);
}

TEST(Grade, AFaultOfTheMachineGivesNoReward) {
  Verdict broken;
  set_failure(broken, Error(Outcome::environment_error, "disk full"));
  auto const verdict = combine_grade({broken});
  EXPECT_FALSE(verdict.reward.value);
  EXPECT_FALSE(verdict.reward.final);
}

TEST(Grade, AProtectionThatOneAskLackedIsNotInForce) {
  auto weaker = ask({2, 1.9, 2.1}, {1.3, 1.2, 1.4});
  weaker.protections[0] = {"network", false, "no namespaces"};
  auto const strong = ask({2, 1.9, 2.1}, {1.3, 1.2, 1.4});
  auto const verdict = combine_grade({strong, weaker, strong});
  EXPECT_FALSE(verdict.protections.at(0).in_force);
}

}  // namespace
}  // namespace cuda_agent::judge
