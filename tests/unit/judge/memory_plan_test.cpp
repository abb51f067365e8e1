#include "judge/memory_plan.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::judge {
namespace {

constexpr std::uint64_t giga = 1'000'000'000;

MemoryFacts large() {
  return {.inputs = 8 * giga, .results = 4 * giga, .model = 5 * giga, .free = 90 * giga, .baselines = 2, .timed = true};
}

TEST(MemoryPlan, CountsWhatIsTakenAndWhatTheCandidateWillTake) {
  auto const plan = plan_memory(large());
  EXPECT_EQ(plan.taken, (3 * 8 + 2 * 4 + 5) * giga);
  EXPECT_EQ(plan.still, (8 + 4 + 3 * 4 + 5) * giga);
}

TEST(MemoryPlan, CheckingAloneKeepsFewerResults) {
  MemoryFacts facts = large();
  facts.timed = false;
  EXPECT_EQ(plan_memory(facts).still, (8 + 4 + 4 + 5) * giga);
}

TEST(MemoryPlan, TheLookAtPrecisionIsPlannedWhereItFitsAndLeftOutWhereNot) {
  MemoryFacts facts = large();
  auto plan = plan_memory(facts);
  EXPECT_EQ(plan.probe, (3 * 8 + 2 * 5 + 4) * giga);
  EXPECT_TRUE(plan.probe_fits);
  EXPECT_EQ(plan.whole(), plan.taken + plan.still + plan.probe);
  facts.free = plan.still + plan.probe - 1;
  plan = plan_memory(facts);
  EXPECT_FALSE(plan.probe_fits);
  EXPECT_EQ(plan.whole(), plan.taken + plan.still);
  EXPECT_TRUE(check_memory(facts));
}

TEST(MemoryPlan, WhatFitsIsAllowedToTheByte) {
  MemoryFacts facts = large();
  facts.free = plan_memory(facts).still;
  EXPECT_TRUE(check_memory(facts));
  --facts.free;
  auto const refused = check_memory(facts);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().outcome, Outcome::environment_error);
  EXPECT_EQ(refused.error().fault, Fault::environment);
  for (const char* word : {"29.0 GB", "66.0 GB", "8.0 GB", "4.0 GB"}) {
    EXPECT_NE(refused.error().message.find(word), std::string::npos) << refused.error().message;
  }
}

TEST(MemoryPlan, SizesAreReadable) {
  EXPECT_EQ(in_words(512'000'000), "512 MB");
  EXPECT_EQ(in_words(12'340'000'000), "12.3 GB");
}

}  // namespace
}  // namespace cuda_agent::judge
