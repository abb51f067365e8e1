#include "judge/precision.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::judge {
namespace {

constexpr double fp32 = 4e-8;
constexpr double tf32 = 3e-4;
constexpr double bf16 = 2e-3;

TEST(Precision, IsNamedAfterTheErrorThatItMakes) {
  EXPECT_EQ(precision_class(0), "fp32");
  EXPECT_EQ(precision_class(fp32), "fp32");
  EXPECT_EQ(precision_class(tf32), "tf32 or fp16");
  EXPECT_EQ(precision_class(bf16), "bf16 or less");
}

TEST(Precision, ErrorsGrowFromLayerToLayer) {
  EXPECT_EQ(precision_class(8 * tf32, 8 * fp32), "tf32 or fp16");
  EXPECT_EQ(precision_class(8 * bf16, 8 * fp32), "bf16 or less");
}

TEST(Precision, TenBitsForEagersTwentyFourAreLower) {
  EXPECT_TRUE(is_lower_precision(PrecisionRule::same, fp32, tf32));
  EXPECT_TRUE(is_lower_precision(PrecisionRule::same, fp32, bf16));
}

TEST(Precision, OtherOrdersOfSummingAndApproximateFunctionsAreNot) {
  EXPECT_FALSE(is_lower_precision(PrecisionRule::same, fp32, 100 * fp32));
  EXPECT_FALSE(is_lower_precision(PrecisionRule::same, 0, 1e-5));
}

TEST(Precision, WhereEagerItselfIsInaccurateTheCandidateMayBe) {
  EXPECT_FALSE(is_lower_precision(PrecisionRule::same, tf32, bf16));
}

TEST(Precision, TheRuleDecides) {
  EXPECT_FALSE(is_lower_precision(PrecisionRule::any, fp32, bf16));
  EXPECT_FALSE(is_lower_precision(PrecisionRule::tf32, fp32, tf32));
  EXPECT_TRUE(is_lower_precision(PrecisionRule::tf32, fp32, 2 * bf16));
}

}  // namespace
}  // namespace cuda_agent::judge
