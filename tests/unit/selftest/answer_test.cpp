#include "selftest/answer.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::selftest {

namespace {

constexpr const char* a_verdict = R"({"outcome": "wrong", "message": "m", "reward": {"value": -1}})";

Result<Answer> answered(const std::string& output, bool text = false) {
  Case one;
  one.text = text;
  return read_answer(one, 6, output);
}

}  // namespace

TEST(ReadAnswer, TakesTheVerdictBesideWarningsOfTheJudge) {
  auto const answer = answered(std::string("cuda-agent: warning: no history\n") + a_verdict + "\n");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->outcome, "wrong");
  EXPECT_EQ(answer->exit_code, 6);
  EXPECT_EQ(answer->reward, -1);
  EXPECT_TRUE(answer->rules.empty());
  EXPECT_FALSE(answer->speedup);
}

TEST(ReadAnswer, TakesNothingButOneVerdict) {
  EXPECT_FALSE(answered(""));
  EXPECT_FALSE(answered("PASS\n"));
  EXPECT_FALSE(answered("[1]\n"));
  EXPECT_FALSE(answered(std::string(a_verdict) + "\n" + a_verdict + "\n"));
  EXPECT_FALSE(answered(std::string("printed by the candidate\n") + a_verdict + "\n"));
  EXPECT_FALSE(answered(R"({"outcome": "pass"})"));
}

TEST(ReadAnswer, RefusesEscapeCodes) {
  auto const answer = answered(std::string("\x1b[2J") + a_verdict);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("escape code"), std::string::npos);
  EXPECT_EQ(answer.error().message.find('\x1b'), std::string::npos) << "nor are they shown";
}

TEST(ReadAnswer, TakesTheFirstWordOfAReport) {
  auto const answer = answered("CRASH  verify /w  fault: candidate\n  PASS\n", true);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->outcome, "crash");
  EXPECT_EQ(answer->message, "CRASH  verify /w  fault: candidate");
  EXPECT_FALSE(answered("well done\n", true));
  EXPECT_FALSE(answered("", true));
}

}  // namespace cuda_agent::selftest
