#include "judge/reward.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::judge {
namespace {

RewardFacts timed(Interval eager, Interval compiled) {
  RewardFacts facts;
  facts.versus_eager = eager;
  facts.versus_compiled = compiled;
  return facts;
}

constexpr Interval clearly_faster = {1.31, 1.28, 1.34};
constexpr Interval barely_faster = {1.07, 1.06, 1.08};
constexpr Interval unsure = {1.06, 1.04, 1.08};  // the estimate is above the bar, the low end is not
constexpr Interval slower = {0.8, 0.79, 0.81};

TEST(ProvisionalReward, FollowsTheMilestones) {
  EXPECT_EQ(provisional_reward(timed(clearly_faster, barely_faster)).value, 3);
  EXPECT_EQ(provisional_reward(timed(clearly_faster, slower)).value, 2);
  EXPECT_EQ(provisional_reward(timed(slower, slower)).value, 1);
  EXPECT_EQ(provisional_reward(timed(slower, clearly_faster)).value, 1);
}

TEST(ProvisionalReward, IsNeverFinal) { EXPECT_FALSE(provisional_reward(timed(clearly_faster, slower)).final); }

TEST(ProvisionalReward, TheLowEndDecides) {
  EXPECT_EQ(provisional_reward(timed(unsure, slower)).value, 1);
  EXPECT_EQ(provisional_reward(timed(clearly_faster, unsure)).value, 2);
  RewardFacts by_median = timed(clearly_faster, unsure);
  by_median.on = RewardOn::median;
  EXPECT_EQ(provisional_reward(by_median).value, 3);
  EXPECT_EQ(provisional_reward(by_median).on, "median");
}

TEST(ProvisionalReward, TheBarItselfIsNotEnough) {
  EXPECT_EQ(provisional_reward(timed({1.1, faster_than, 1.2}, slower)).value, 1);
  EXPECT_EQ(provisional_reward(timed({1.1, faster_than + 1e-9, 1.2}, slower)).value, 2);
}

TEST(ProvisionalReward, TheReasonShowsTheNumbers) {
  EXPECT_EQ(provisional_reward(timed(clearly_faster, barely_faster)).reason,
            "1.31× eager (low end 1.28) and 1.07× compiled (low end 1.0600): both above 1.0526");
  EXPECT_EQ(provisional_reward(timed(clearly_faster, slower)).reason,
            "1.31× eager (low end 1.28) and 0.80× compiled (low end 0.79): only the first above 1.0526");
}

TEST(ProvisionalReward, ACandidateThatFailsGetsMinusOneInEveryCommand) {
  for (const Outcome outcome :
       {Outcome::compile_error, Outcome::policy_violation, Outcome::wrong, Outcome::crash, Outcome::timeout}) {
    RewardFacts facts;
    facts.outcome = outcome;
    facts.fault = Fault::candidate;
    EXPECT_EQ(provisional_reward(facts).value, -1) << to_string(outcome);
  }
}

TEST(ProvisionalReward, AnybodyElsesFaultGivesNone) {
  for (const Fault fault : {Fault::task, Fault::environment, Fault::internal}) {
    RewardFacts facts = timed(clearly_faster, clearly_faster);
    facts.outcome = Outcome::timeout;
    facts.fault = fault;
    const Reward reward = provisional_reward(facts);
    EXPECT_EQ(reward.value, std::nullopt);
    EXPECT_FALSE(reward.reason.empty());
  }
}

TEST(ProvisionalReward, AnInterruptedAskGivesNone) {
  RewardFacts facts;
  facts.outcome = Outcome::interrupted;
  EXPECT_EQ(provisional_reward(facts).value, std::nullopt);
}

TEST(ProvisionalReward, CorrectWithoutATimeGivesNone) {
  const Reward reward = provisional_reward(RewardFacts{});
  EXPECT_EQ(reward.value, std::nullopt);
  EXPECT_NE(reward.reason.find("no speed was measured"), std::string::npos);
}

TEST(ProvisionalReward, WithoutTheRulesThereIsNone) {
  RewardFacts facts = timed(clearly_faster, barely_faster);
  facts.policy_off = true;
  EXPECT_FALSE(provisional_reward(facts).value);
  EXPECT_NE(provisional_reward(facts).reason.find("--policy none"), std::string::npos);
}

TEST(ProvisionalReward, LessPrecisionThanAskedForGivesOneAtTheMost) {
  RewardFacts facts = timed(clearly_faster, barely_faster);
  facts.precision = {.rule = "same",
                     .eager = 1e-8,
                     .candidate = 1e-3,
                     .eager_class = "fp32",
                     .candidate_class = "tf32 or fp16",
                     .lower = true};
  Reward const capped = provisional_reward(facts);
  EXPECT_EQ(capped.value, 1);
  EXPECT_NE(capped.reason.find("tf32 or fp16"), std::string::npos) << capped.reason;
  facts.precision->lower = false;
  EXPECT_EQ(provisional_reward(facts).value, 3);
}

TEST(ProvisionalReward, ReplayedSeedsGiveNone) {
  RewardFacts facts = timed(clearly_faster, clearly_faster);
  facts.seeds_replayed = true;
  const Reward reward = provisional_reward(facts);
  EXPECT_EQ(reward.value, std::nullopt);
  EXPECT_NE(reward.reason.find("--seed"), std::string::npos);
}

TEST(ProvisionalReward, AnUnfitTaskGivesNoneAndOtherFindingsDoNotMatter) {
  RewardFacts facts = timed(clearly_faster, clearly_faster);
  facts.task_findings = {{"slow_inputs", "get_inputs takes 3 s"}};
  EXPECT_EQ(provisional_reward(facts).value, 3);
  for (const char* kind : {"degenerate", "nondeterministic"}) {
    facts.task_findings = {{"slow_inputs", ""}, {kind, "the output does not depend on the inputs"}};
    const Reward reward = provisional_reward(facts);
    EXPECT_EQ(reward.value, std::nullopt) << kind;
    EXPECT_NE(reward.reason.find(kind), std::string::npos);
  }
}

TEST(ProvisionalReward, SlowerThanAskedForIsStillCorrect) {
  RewardFacts facts = timed(clearly_faster, slower);
  facts.outcome = Outcome::slow;
  facts.fault = Fault::candidate;
  EXPECT_EQ(provisional_reward(facts).value, 2);
}

TEST(ProvisionalReward, GivesWhatOneBaselineCanShow) {
  RewardFacts eager_only;
  eager_only.versus_eager = clearly_faster;
  EXPECT_EQ(provisional_reward(eager_only).value, 2);
  EXPECT_NE(provisional_reward(eager_only).reason.find("compiled was not timed"), std::string::npos);
  RewardFacts compiled_only;
  compiled_only.versus_compiled = clearly_faster;
  EXPECT_EQ(provisional_reward(compiled_only).value, 1);
  EXPECT_NE(provisional_reward(compiled_only).reason.find("eager was not timed"), std::string::npos);
}

}  // namespace
}  // namespace cuda_agent::judge
