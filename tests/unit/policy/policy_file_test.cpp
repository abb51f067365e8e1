#include "policy/policy_file.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "util/files.hpp"

namespace cuda_agent::policy {
namespace {

namespace fs = std::filesystem;

Result<nlohmann::json> read_text(const std::string& text) {
  auto const folder = util::TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-test-");
  if (!folder) return fail(folder.error());
  auto const file = folder->path() / "policy.json";
  if (auto written = util::write_file(file, text); !written) return fail(written.error());
  return read_policy_file(file);
}

TEST(PolicyFile, OurOwnCanBeReadAndEveryRuleIsExplained) {
  auto const policy = read_policy_file(POLICY_TEST_CONFIG);
  ASSERT_TRUE(policy) << policy.error().message;
  auto const rules = rules_of(*policy);
  EXPECT_GT(rules.size(), 20U);
  for (auto const& rule : rules) {
    EXPECT_FALSE(rule.summary.empty()) << rule.name;
    EXPECT_FALSE(rule.why.empty()) << rule.name;
    EXPECT_FALSE(rule.instead.empty()) << rule.name;
  }
}

/// Every value of a key "rule", however deep.
void collect_rules(const nlohmann::json& from, std::set<std::string>& names) {
  if (from.is_object() && from.contains("rule")) names.insert(from.at("rule").get<std::string>());
  if (!from.is_structured()) return;
  for (auto const& part : from) collect_rules(part, names);
}

TEST(PolicyFile, ExplainsWhateverIsFoundInObjects) {
  auto const policy = read_policy_file(POLICY_TEST_CONFIG);
  ASSERT_TRUE(policy) << policy.error().message;
  auto const text = util::read_file(POLICY_TEST_OBJECTS, std::size_t{1} << 20);
  ASSERT_TRUE(text) << text.error().message;
  // Those that no list has but the code.
  std::set<std::string> names = {"constructor", "executable-stack", "export",          "ifunc",        "interposition",
                                 "load-order",  "system-call",      "text-relocation", "writable-code"};
  collect_rules(nlohmann::json::parse(*text), names);
  EXPECT_GT(names.size(), 30U);
  auto const rules = rules_of(*policy);
  for (auto const& name : names) EXPECT_TRUE(find_rule(rules, name)) << name;
}

TEST(PolicyFile, SaysWhatIsWrongWithABrokenOne) {
  for (auto const& [text, word] : std::vector<std::pair<std::string, std::string>>{
           {"{", "policy.json"},
           {"[]", "policy.json"},
           {R"({"schema": "something/1", "rules": []})", "cuda-agent/policy/1"},
           {R"({"schema": "cuda-agent/policy/1", "rules": [{"name": "x"}]})", "summary"}}) {
    auto const policy = read_text(text);
    ASSERT_FALSE(policy) << text;
    EXPECT_EQ(policy.error().outcome, Outcome::environment_error);
    EXPECT_NE(policy.error().message.find(word), std::string::npos) << policy.error().message;
  }
}

TEST(PolicyFile, AMissingOneIsTheEnvironmentsFault) {
  auto const policy = read_policy_file("/no/such/policy.json");
  ASSERT_FALSE(policy);
  EXPECT_EQ(policy.error().outcome, Outcome::environment_error);
}

TEST(PolicyFile, FindsARuleOrTheOneThatWasMeant) {
  auto const policy = read_policy_file(POLICY_TEST_CONFIG);
  ASSERT_TRUE(policy);
  auto const found = find_rule(rules_of(*policy), "torch-compute");
  ASSERT_TRUE(found);
  EXPECT_NE(found->wrong.find("torch."), std::string::npos);
  auto const misspelt = find_rule(rules_of(*policy), "torch-compte");
  ASSERT_FALSE(misspelt);
  EXPECT_EQ(misspelt.error().outcome, Outcome::usage_error);
  EXPECT_NE(misspelt.error().message.find("'torch-compute'"), std::string::npos) << misspelt.error().message;
}

}  // namespace
}  // namespace cuda_agent::policy
