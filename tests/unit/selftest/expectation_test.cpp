#include "selftest/expectation.hpp"

#include <gtest/gtest.h>

#include "selftest/answer.hpp"

namespace cuda_agent::selftest {

namespace {

using nlohmann::json;

json verdict(const std::string& outcome, const json& reward) {
  return {{"outcome", outcome},     {"message", "trial 1: output[0] is all zeros"},
          {"hints", json::array()}, {"reward", {{"value", reward}}},
          {"policy", nullptr},      {"speed", nullptr}};
}

json with_rule(const std::string& rule, double reward) {
  auto result = verdict("policy_violation", reward);
  result["policy"] = {{"findings", {{{"rule", rule}}, {{"rule", "fallback"}}}}};
  return result;
}

/// What is wrong with this answer; the answer itself must be readable.
std::vector<std::string> problems(const Case& one, int code, const json& answered) {
  auto const answer = read_answer(one, code, answered.dump() + "\n");
  EXPECT_TRUE(answer) << answer.error().message;
  return answer ? unexpected(one, *answer) : std::vector<std::string>{"not read"};
}

Case expecting(std::vector<std::string> outcomes, std::vector<int> codes) {
  Case one;
  one.expect.outcomes = std::move(outcomes);
  one.expect.exit_codes = std::move(codes);
  return one;
}

}  // namespace

TEST(Unexpected, NothingWhenAllIsAsItShouldBe) {
  auto one = expecting({"crash", "wrong"}, {6});
  one.expect.message = "nan|all zeros";
  EXPECT_TRUE(problems(one, 6, verdict("wrong", -1)).empty());
}

TEST(Unexpected, AnotherOutcomeOrExitCode) {
  auto const one = expecting({"wrong"}, {6});
  EXPECT_EQ(problems(one, 0, verdict("pass", 1)),
            std::vector<std::string>{"got pass (exit code 0), expected wrong (exit code 6)"});
  EXPECT_EQ(problems(one, 1, verdict("wrong", -1)),
            std::vector<std::string>{"got wrong (exit code 1), expected wrong (exit code 6)"});
}

TEST(Unexpected, AMessageOfSomethingElse) {
  auto one = expecting({"wrong"}, {6});
  one.expect.message = "has shape";
  auto const found = problems(one, 6, verdict("wrong", -1));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], "the message does not match 'has shape': trial 1: output[0] is all zeros");
}

TEST(Unexpected, TheRuleMustBeAmongTheBrokenOnes) {
  auto one = expecting({"policy_violation"}, {4});
  one.expect.rule = "torch-compute";
  EXPECT_TRUE(problems(one, 4, with_rule("torch-compute", -1)).empty());
  EXPECT_EQ(problems(one, 4, with_rule("names", -1)),
            std::vector<std::string>{"not refused by torch-compute, but by fallback, names"});
  EXPECT_EQ(problems(one, 4, verdict("policy_violation", -1)),
            std::vector<std::string>{"not refused by torch-compute, but by no rule"});
  EXPECT_EQ(problems(one, 4, with_rule("torch-compute", 1)),
            std::vector<std::string>{"reward 1.0 for a broken rule, expected -1"});
}

TEST(Unexpected, ARewardThatIsNotEarned) {
  auto one = expecting({"pass"}, {0});
  one.expect.reward = nullptr;
  EXPECT_TRUE(problems(one, 0, verdict("pass", nullptr)).empty());
  EXPECT_EQ(problems(one, 0, verdict("pass", 1)), std::vector<std::string>{"reward 1.0, expected null"});
  auto hidden = verdict("pass", nullptr);
  hidden["reward"]["reason"] = "the rules were not enforced (--policy none)";
  EXPECT_EQ(problems(one, 0, hidden),
            std::vector<std::string>{"there is no reward since the policy is off, which hides "
                                     "why there should be none"});
}

}  // namespace cuda_agent::selftest
