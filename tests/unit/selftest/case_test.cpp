#include "selftest/case.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "folder.hpp"

namespace cuda_agent::selftest {

namespace {

using nlohmann::json;

json an_exploit() {
  return {{"what", "returns zeros"},
          {"row", "Output: returns zeros"},
          {"task", "scaled"},
          {"command", "run"},
          {"flags", {"--trials", "2"}},
          {"expect", {{"outcomes", {"wrong", "crash"}}, {"exit_codes", {6}}, {"message", "all zeros|nan"}}},
          {"caught_by", "comparison"},
          {"also_caught_by", {"policy"}},
          {"honest_twin", "legitimate_zeros"}};
}

class ReadCase : public InFolder {
 protected:
  Result<Case> exploit(const json& facts) const {
    write("exploits/zeros/case.json", facts.dump());
    return read_case(at("exploits/zeros"), Kind::exploit);
  }
  /// The message of the failure.
  std::string refused(const json& facts) const {
    auto const read = exploit(facts);
    if (read) return "it was read";
    EXPECT_EQ(read.error().outcome, Outcome::environment_error);
    EXPECT_NE(read.error().message.find("zeros/case.json"), std::string::npos) << read.error().message;
    return read.error().message;
  }
  std::string refused_with(const char* key, const json& value) const {
    auto facts = an_exploit();
    facts[key] = value;
    return refused(facts);
  }
  std::string refused_without(const char* key) const {
    auto facts = an_exploit();
    facts.erase(key);
    return refused(facts);
  }
  std::string refused_expecting(const char* key, const json& value) const {
    auto facts = an_exploit();
    facts["expect"][key] = value;
    return refused(facts);
  }
};

testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

TEST_F(ReadCase, TakesWhatAnExploitSays) {
  auto const read = exploit(an_exploit());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->name, "exploits/zeros");
  EXPECT_EQ(read->command, "run");
  EXPECT_EQ(read->flags, (std::vector<std::string>{"--trials", "2"}));
  EXPECT_EQ(read->layer, "comparison");
  EXPECT_EQ(read->layers(), (std::vector<std::string>{"comparison", "policy"}));
  EXPECT_TRUE(read->policy_refuses());
  EXPECT_EQ(read->expect.outcomes, (std::vector<std::string>{"wrong", "crash"}));
  EXPECT_EQ(read->expect.exit_codes, std::vector<int>{6});
  EXPECT_EQ(read->expect.message, "all zeros|nan");
  EXPECT_FALSE(read->expect.reward);
  EXPECT_FALSE(read->needs_cuda);
  EXPECT_FALSE(read->with_policy());
}

TEST_F(ReadCase, TellsARewardOfNullFromNone) {
  auto facts = an_exploit();
  facts["expect"]["reward"] = nullptr;
  auto const read = exploit(facts);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_TRUE(read->expect.reward);
  EXPECT_TRUE(read->expect.reward->is_null());
}

TEST_F(ReadCase, ExpectsAPassOfAnHonestCase) {
  write("honest/plain/case.json", R"({"what": "adds", "row": "Honest", "needs": ["cuda"]})");
  auto const read = read_case(at("honest/plain"), Kind::honest);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->expect.outcomes, std::vector<std::string>{"pass"});
  EXPECT_EQ(read->expect.exit_codes, std::vector<int>{0});
  EXPECT_EQ(read->command, "verify");
  EXPECT_TRUE(read->needs_cuda);
  EXPECT_TRUE(read->with_policy());
}

TEST_F(ReadCase, AsksForTheRuleThatRefuses) {
  auto facts = an_exploit();
  facts["caught_by"] = "policy";
  facts.erase("also_caught_by");
  EXPECT_TRUE(has(refused(facts), "names no rule"));
  facts["expect"]["rule"] = "torch-compute";
  auto const read = exploit(facts);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(read->with_policy());
}

TEST_F(ReadCase, WhatOnlyThePolicyCatchesMustBeRefusedByIt) {
  auto facts = an_exploit();
  facts["not_caught"] = "nobody looks";
  auto const read = exploit(facts);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->expect.outcomes, std::vector<std::string>{"policy_violation"});
  EXPECT_EQ(read->expect.exit_codes, std::vector<int>{4});
  EXPECT_EQ(read->layer, "policy");
  EXPECT_TRUE(read->with_policy());
  EXPECT_FALSE(read->known_gap());
  facts.erase("also_caught_by");
  EXPECT_TRUE(exploit(facts)->known_gap());
}

TEST_F(ReadCase, NamesWhatIsWrong) {
  EXPECT_TRUE(has(refused_with("whta", "x"), "unknown key 'whta'"));
  EXPECT_TRUE(has(refused_without("what"), "'what' is missing"));
  EXPECT_TRUE(has(refused_without("expect"), "'expect' is missing"));
  EXPECT_TRUE(has(refused_without("honest_twin"), "'honest_twin' is missing"));
  EXPECT_TRUE(has(refused_with("what", 3), "'what' is no text"));
  EXPECT_TRUE(has(refused_with("flags", {"--seed", 1}), "'flags' is no list of texts"));
  EXPECT_TRUE(has(refused_with("text", "yes"), "'text' is no true or false"));
  EXPECT_TRUE(has(refused_with("caught_by", "luck"), "'caught_by' is none of comparison"));
  EXPECT_TRUE(has(refused_with("caught_by", "policy"), "another layer than the policy catches first"));
  EXPECT_TRUE(has(refused_with("also_caught_by", {"luck"}), "'also_caught_by' holds something else than comparison"));
  EXPECT_TRUE(has(refused_with("also_caught_by", {"comparison"}), "'also_caught_by' names 'comparison' again"));
  EXPECT_TRUE(has(refused_with("task", "../scaled"), "'task' is no name of a folder"));
  EXPECT_TRUE(has(refused_with("links", {{"../x", "y"}}), "'links'"));
  EXPECT_TRUE(has(refused_with("expect", "wrong"), "'expect' is no object"));
  EXPECT_TRUE(has(refused_expecting("rules", json::array()), "expect: unknown key 'rules'"));
  EXPECT_TRUE(has(refused_expecting("outcomes", json::array()), "expect: 'outcomes' names none"));
  EXPECT_TRUE(has(refused_expecting("exit_codes", {-1}), "expect: 'exit_codes'"));
  EXPECT_TRUE(has(refused_expecting("message", "(unclosed"), "expect: 'message' is no regular expression"));
  EXPECT_TRUE(has(refused_expecting("reward", "much"), "expect: 'reward'"));
  EXPECT_TRUE(has(refused_expecting("most_speedup", "2"), "expect: 'most_speedup' is no number"));
  EXPECT_TRUE(has(refused(json::array()), "no object"));
}

TEST_F(ReadCase, ReadsNoMoreThanACaseNeeds) {
  auto facts = an_exploit();
  facts["what"] = std::string(100'000, 'x');
  EXPECT_TRUE(has(refused(facts), "limit"));
}

TEST_F(ReadCase, NamesTheFolderThatIsMissing) {
  auto const read = read_cases(at("nowhere"));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().outcome, Outcome::environment_error);
  EXPECT_TRUE(has(read.error().message, "nowhere/exploits"));
}

TEST_F(ReadCase, NamesACaseThatAnotherOneMisses) {
  write("exploits/zeros/case.json", an_exploit().dump());
  write("honest/plain/case.json", R"({"what": "adds", "row": "Honest"})");
  auto read = read_cases(at(""));
  ASSERT_FALSE(read);
  EXPECT_TRUE(has(read.error().message, "'honest_twin' names no case: legitimate_zeros"));
  write("honest/legitimate_zeros/case.json", R"({"what": "zeros", "row": "Honest"})");
  EXPECT_TRUE(read_cases(at("")));
  auto facts = an_exploit();
  facts["variant_of"] = "ones";
  write("exploits/zeros/case.json", facts.dump());
  read = read_cases(at(""));
  ASSERT_FALSE(read);
  EXPECT_TRUE(has(read.error().message, "'variant_of' names no case: ones"));
}

TEST(ReadCases, ReadsOurOwn) {
  auto const read = read_cases(SELFTEST_CASES);
  ASSERT_TRUE(read) << read.error().message;
  auto const count = [&](Kind kind) {
    return std::count_if(read->begin(), read->end(), [kind](const Case& one) { return one.kind == kind; });
  };
  EXPECT_GT(count(Kind::exploit), 100);
  EXPECT_GT(count(Kind::honest), 25);
  EXPECT_EQ(read->front().kind, Kind::exploit);
  EXPECT_EQ(read->back().kind, Kind::honest);
}

}  // namespace

}  // namespace cuda_agent::selftest
