#include "selftest/layer.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::selftest {

using Names = std::vector<std::string>;

TEST(SwitchesOf, SwitchesOffAllThatAreNamed) {
  auto const switches = switches_of({"other-inputs", "precision", "comparison", "policy"});
  EXPECT_EQ(switches.arguments,
            (Names{"--only-drawn-inputs", "--precision", "any", "--without", "comparison", "--policy", "none"}));
  EXPECT_TRUE(switches.missing.empty());
  EXPECT_TRUE(switches_of({}).arguments.empty());
}

TEST(SwitchesOf, NamesThoseWithoutASwitch) {
  auto const switches = switches_of({"sandbox", "policy", "clock"});
  EXPECT_EQ(switches.arguments, (Names{"--policy", "none"}));
  EXPECT_EQ(switches.missing, (Names{"sandbox", "clock"}));
}

TEST(SwitchesOf, TheJudgeTakesEachFlagOnce) {
  auto const switches = switches_of({"seal", "stopping"});
  EXPECT_EQ(switches.arguments, (Names{"--without", "seal"}));
  EXPECT_EQ(switches.missing, Names{"stopping"});
}

TEST(IsLayer, KnowsTheNamesThatItLists) {
  EXPECT_TRUE(is_layer("comparison"));
  EXPECT_FALSE(is_layer("luck"));
  EXPECT_NE(layer_names().find("snapshot, policy"), std::string::npos) << layer_names();
}

}  // namespace cuda_agent::selftest
