#include "cli/workspace_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "util/files.hpp"

namespace cuda_agent::cli {

namespace fs = std::filesystem;

class WorkspaceFiles : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = util::TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-test-");
    ASSERT_TRUE(folder);
    m_folder = std::move(*folder);
  }
  fs::path at(const fs::path& name) const { return m_folder.path() / name; }
  std::string content(const fs::path& name) const { return util::read_file(at(name), 1000).value_or("nothing"); }

  NewFiles m_files{{"a.txt", {"text", false, false}},
                   {"utils/run.sh", {"#!/bin/sh\n", false, true}},
                   {".claude/skills/a/link.txt", {"../../../a.txt", true, false}}};

 private:
  util::TemporaryFolder m_folder;
};

TEST_F(WorkspaceFiles, AreWrittenWithModesAndLinks) {
  EXPECT_TRUE(conflicts(m_files, at("")).empty());
  ASSERT_TRUE(write_files(m_files, at("")));
  EXPECT_EQ(content("a.txt"), "text");
  EXPECT_TRUE(fs::is_symlink(at(".claude/skills/a/link.txt")));
  EXPECT_EQ(fs::canonical(at(".claude/skills/a/link.txt")), fs::canonical(at("a.txt")));
  struct stat info {};
  ASSERT_EQ(::stat(at("utils/run.sh").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0111, 0111U);
}

TEST_F(WorkspaceFiles, ConflictWithOtherContentOnly) {
  ASSERT_TRUE(write_files(m_files, at("")));
  EXPECT_TRUE(conflicts(m_files, at("")).empty()) << "the same again is no conflict";
  ASSERT_TRUE(util::write_file(at("a.txt"), "mine"));
  EXPECT_EQ(conflicts(m_files, at("")), std::vector<std::string>{"a.txt"});
}

TEST_F(WorkspaceFiles, ReplaceALinkInsteadOfWritingThroughIt) {
  ASSERT_TRUE(util::write_file(at("precious"), "keep"));
  fs::create_symlink("precious", at("a.txt"));
  EXPECT_EQ(conflicts(m_files, at("")), std::vector<std::string>{"a.txt"});
  ASSERT_TRUE(write_files(m_files, at("")));
  EXPECT_EQ(content("precious"), "keep");
  EXPECT_EQ(content("a.txt"), "text");
}

}  // namespace cuda_agent::cli
