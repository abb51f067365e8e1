#include "cli/seeds.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::cli {
namespace {

TEST(Seeds, OneNumberIsTheSeedOfBothInputsAndConstructors) {
  auto const seeds = seeds_in("18446744073709551615");
  ASSERT_TRUE(seeds);
  judge::Options options;
  seeds->set(options);
  EXPECT_EQ(options.seed, 18446744073709551615U);
  EXPECT_FALSE(options.constructor_seed);
}

TEST(Seeds, TwoNumbersAreThatOfInputsAndThatOfConstructors) {
  auto const seeds = seeds_in("12/034");
  ASSERT_TRUE(seeds);
  judge::Options options;
  seeds->set(options);
  EXPECT_EQ(options.seed, 12U);
  EXPECT_EQ(options.constructor_seed, 34U);
}

TEST(Seeds, AnythingElseIsNone) {
  for (char const* const text : {"", "/", "1/", "/2", "1/2/3", "-1", "1 ", "0x1", "18446744073709551616"}) {
    EXPECT_FALSE(seeds_in(text)) << text;
  }
}

}  // namespace
}  // namespace cuda_agent::cli
