#include "cli/history.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/json.hpp"
#include "util/files.hpp"
#include "util/text.hpp"

namespace cuda_agent::cli {

class History : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = util::TemporaryFolder::make(std::filesystem::temp_directory_path(), "cuda-agent-test-");
    ASSERT_TRUE(folder);
    m_folder = std::move(*folder);
    m_workspace = {m_folder.path(), m_folder.path()};
  }
  std::string content(const char* name) const {
    return util::read_file(m_folder.path() / name, 1 << 20).value_or("nothing");
  }

  util::TemporaryFolder m_folder;
  workspace::Workspace m_workspace;
};

TEST_F(History, KeepsEveryVerdictOnALineAndTheLastOneWhole) {
  Verdict verdict;
  verdict.message = "first\nverdict";
  ASSERT_TRUE(record(m_workspace, report::render_json(verdict)));
  set_failure(verdict, Error(Outcome::wrong, "second"));
  ASSERT_TRUE(record(m_workspace, report::render_json(verdict)));
  auto const lines = util::split_lines(content("history.jsonl"));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(nlohmann::json::parse(lines[0]).at("message"), "first\nverdict");
  EXPECT_EQ(nlohmann::json::parse(lines[1]).at("outcome"), "wrong");
  EXPECT_EQ(content("last-verdict.json"), lines[1] + "\n");
}

TEST_F(History, SaysWhenItCannotBeWritten) {
  std::filesystem::create_directory(m_folder.path() / "history.jsonl");
  auto const recorded = record(m_workspace, report::render_json(Verdict{}));
  ASSERT_FALSE(recorded);
  EXPECT_NE(recorded.error().message.find("history.jsonl"), std::string::npos);
  EXPECT_NE(content("last-verdict.json"), "nothing") << "one failure must not cost the other record";
}

}  // namespace cuda_agent::cli
