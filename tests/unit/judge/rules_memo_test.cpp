#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "judge/policy_stage.hpp"
#include "util/files.hpp"

namespace cuda_agent::judge {
namespace {

namespace fs = std::filesystem;

TEST(RulesMemo, ForgetsWhatWasNotedFirst) {
  RulesMemo memo;
  for (int i = 0; i < 65; ++i) memo.note(std::to_string(i), {});
  EXPECT_EQ(memo.find("0"), nullptr);
  ASSERT_NE(memo.find("1"), nullptr);
  memo.note("another", {});
  EXPECT_NE(memo.find("1"), nullptr) << "it was asked for just now";
  EXPECT_EQ(memo.find("2"), nullptr);
}

PolicyFinding known_finding() {
  PolicyFinding finding;
  finding.rule = "known";
  return finding;
}

/// Findings that come from the memo need no interpreter; all others fail without one.
class RulesMemoOfFiles : public testing::Test {
 protected:
  RulesMemoOfFiles() {
    fs::create_directories(policy() / "rules");
    write(m_folder->path() / "model_new.py", "x = 1\n");
    write(policy() / "policy.json", "{}");
    write(policy() / "rules" / "a.py", "pass\n");
  }
  static void write(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }
  fs::path policy() const { return m_folder->path() / "policy"; }
  Result<std::vector<PolicyFinding>> check() {
    build::Interpreter nobody;
    nobody.executable = "/not/there";
    return check_model_new(m_folder->path(), nobody, policy(), util::Deadline::after(std::chrono::seconds(20)),
                           &m_memo);
  }

  Result<util::TemporaryFolder> m_folder = util::TemporaryFolder::make(fs::temp_directory_path(), "memo-");
  RulesMemo m_memo;
};

TEST_F(RulesMemoOfFiles, AFailureIsNotRemembered) {
  EXPECT_FALSE(check());
  EXPECT_FALSE(check());
}

TEST_F(RulesMemoOfFiles, EverythingThatTheFindingsDependOnIsInTheKey) {
  auto const key = [&] {
    build::Interpreter nobody;
    nobody.executable = "/not/there";
    return rules_key(m_folder->path() / "model_new.py", nobody, policy()).value_or("");
  };
  auto const before = key();
  ASSERT_FALSE(before.empty());
  m_memo.note(before, {known_finding()});
  auto const known = check();
  ASSERT_TRUE(known);
  ASSERT_EQ(known->size(), 1U);
  EXPECT_EQ(known->front().rule, "known");
  for (auto const& file : {m_folder->path() / "model_new.py", policy() / "policy.json", policy() / "rules" / "a.py"}) {
    auto const old = *util::read_file(file, 1 << 20);
    write(file, old + "#");
    EXPECT_NE(key(), before) << file;
    EXPECT_FALSE(check()) << file << ": it must be asked about again";
    write(file, old);
    EXPECT_EQ(key(), before);
  }
  write(policy() / "rules" / "b.py", "");
  EXPECT_NE(key(), before);
}

}  // namespace
}  // namespace cuda_agent::judge
