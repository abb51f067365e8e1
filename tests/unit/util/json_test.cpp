#include "util/json.hpp"

#include <string>

#include <gtest/gtest.h>

namespace cuda_agent::util {
namespace {

TEST(ParseJson, ReadsJson) {
  auto const value = parse_json(R"({"a": [1, 2.5, "]", null]})");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->at("a").at(2), "]");
}

TEST(ParseJson, SaysAtWhichByteItIsWrong) {
  auto const value = parse_json("{\"a\": }");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().outcome, Outcome::internal_error);
  EXPECT_NE(value.error().message.find("byte 7"), std::string::npos) << value.error().message;
}

TEST(ParseJson, RefusesWhatIsNoJson) {
  EXPECT_FALSE(parse_json(""));
  EXPECT_FALSE(parse_json("NaN"));
  EXPECT_FALSE(parse_json("{} {}"));
  EXPECT_FALSE(parse_json("\"\xFF\""));
  EXPECT_FALSE(parse_json("1e999"));
}

TEST(ParseJson, RefusesTooMuchAndTooDeep) {
  EXPECT_TRUE(parse_json("[[1]]", {100, 2}));
  EXPECT_FALSE(parse_json("[[[1]]]", {100, 2}));
  EXPECT_TRUE(parse_json("[\"[[[[\\\"[[[\"]", {100, 1})) << "brackets in a string are text";
  EXPECT_FALSE(parse_json(std::string(101, ' '), {100, 2}));
  EXPECT_FALSE(parse_json(std::string(1000000, '['))) << "must not use up the stack";
}

}  // namespace
}  // namespace cuda_agent::util
