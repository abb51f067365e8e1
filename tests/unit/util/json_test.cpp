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

TEST(FindAmbiguity, AcceptsWhatTheLibraryWrites) {
  for (double const value :
       {0.1, 1.0 / 3, 1e22, 5e-324, 123456789.0, -0.0, 2.5e-7, 9007199254740993.0, 1.7976931348623157e308}) {
    auto const text = nlohmann::json(value).dump();
    EXPECT_EQ(find_ambiguity(text), std::nullopt) << text;
  }
  EXPECT_EQ(find_ambiguity(R"({"a": [1, -2, 0.50, 1e-05, 1E+2], "b": {"a": "0.10000000000000001"}})"), std::nullopt);
}

TEST(FindAmbiguity, SaysWhichNumberHasDigitsThatDoNotCount) {
  for (char const* const text :
       {"0.10000000000000001", "[0.30000000000000000001]", "4e-324", "1.79769313486231571e308"}) {
    auto const found = find_ambiguity(text);
    ASSERT_TRUE(found) << text;
    EXPECT_NE(found->find("digits"), std::string::npos) << *found;
  }
}

TEST(FindAmbiguity, SaysWhichNameIsThereTwice) {
  EXPECT_EQ(find_ambiguity(R"({"a": 1, "b": {"a": 2}})"), std::nullopt);
  auto const found = find_ambiguity(R"([{"a": 1, "b": 1, "a": 1}])");
  ASSERT_TRUE(found);
  EXPECT_NE(found->find("\"a\""), std::string::npos) << *found;
  EXPECT_TRUE(find_ambiguity(R"({"a": 1, "\u0061": 1})"));
}

}  // namespace
}  // namespace cuda_agent::util
