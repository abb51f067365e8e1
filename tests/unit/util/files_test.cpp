#include "util/files.hpp"

#include <algorithm>
#include <iterator>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/text.hpp"

namespace cuda_agent::util {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make(fs::temp_directory_path(), "files-test-");
    ASSERT_TRUE(made) << made.error().message;
    m_folder = std::move(*made);
  }
  fs::path at(const char* name) const { return m_folder.path() / name; }
  std::ptrdiff_t count() const { return std::distance(fs::directory_iterator(m_folder.path()), {}); }

  TemporaryFolder m_folder;
};

TEST_F(Files, ReadsBackWhatWasWritten) {
  std::string const content = std::string("a\0b\n", 4) + std::string(200000, 'x');
  ASSERT_TRUE(write_file(at("f"), content));
  EXPECT_EQ(read_file(at("f"), 1 << 20), content);
}

TEST_F(Files, ReadsAFileThatIsExactlyAsLongAsTheLimit) {
  ASSERT_TRUE(write_file(at("f"), "1234"));
  EXPECT_EQ(read_file(at("f"), 4), "1234");
  auto const longer = read_file(at("f"), 3);
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().outcome, Outcome::environment_error);
  EXPECT_NE(longer.error().message.find("limit of 3 bytes"), std::string::npos) << longer.error().message;
}

TEST_F(Files, ReadsFilesOfProcWhoseSizeIsZero) {
  auto const status = read_file("/proc/self/status", 1 << 20);
  ASSERT_TRUE(status);
  EXPECT_NE(status->find("Pid:"), std::string::npos);
}

TEST_F(Files, NamesTheFileThatIsMissing) {
  auto const missing = read_file(at("none"), 10);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find(at("none").string()), std::string::npos);
}

TEST_F(Files, DoesNotWaitForAFifoAndReadsNoFolder) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(read_file(at("fifo"), 10));
  EXPECT_FALSE(read_file(m_folder.path(), 10));
}

TEST_F(Files, WritingReplacesTheFileAsAWholeAndKeepsItsMode) {
  ASSERT_TRUE(write_file(at("f"), "old"));
  ASSERT_EQ(::chmod(at("f").c_str(), 0640), 0);
  fs::create_hard_link(at("f"), at("link"));
  ASSERT_TRUE(write_file(at("f"), "new"));
  EXPECT_EQ(read_file(at("link"), 10), "old") << "the old file itself was written to";
  EXPECT_EQ(fs::status(at("f")).permissions(), fs::perms(0640));
  EXPECT_EQ(count(), 2) << "a temporary file was left behind";
}

TEST_F(Files, AFailedWriteLeavesNothingBehind) {
  fs::create_directory(at("d"));
  EXPECT_FALSE(write_file(at("d"), "x"));
  EXPECT_EQ(count(), 1);
  EXPECT_FALSE(write_file(at("none") / "f", "x"));
}

TEST_F(Files, AFullDiskIsNamed) {
  auto const written = append_line("/dev/full", "x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().outcome, Outcome::environment_error);
  EXPECT_NE(written.error().message.find("disk full"), std::string::npos) << written.error().message;
}

TEST_F(Files, LinesAppendedAtOnceNeverMix) {
  std::string const line(3000, 'y');
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&] {
      for (int j = 0; j < 50; ++j) EXPECT_TRUE(append_line(at("log"), line));
    });
  }
  for (auto& writer : writers) writer.join();
  auto const lines = split_lines(read_file(at("log"), 1 << 20).value());
  EXPECT_EQ(lines.size(), 200U);
  EXPECT_TRUE(std::all_of(lines.begin(), lines.end(), [&](auto const& l) { return l == line; }));
}

TEST_F(Files, MakesFoldersAndSaysWhatIsInTheWay) {
  EXPECT_TRUE(make_folders(at("a") / "b" / "c"));
  EXPECT_TRUE(make_folders(at("a") / "b" / "c")) << "existing folders are no error";
  ASSERT_TRUE(write_file(at("file"), ""));
  EXPECT_FALSE(make_folders(at("file")));
  EXPECT_FALSE(make_folders(at("file") / "x"));
}

TEST_F(Files, ATemporaryFolderIsPrivateAndGoesWithItsContent) {
  fs::path where;
  {
    auto folder = TemporaryFolder::make(m_folder.path(), "t-");
    ASSERT_TRUE(folder);
    TemporaryFolder const moved = std::move(*folder);
    where = moved.path();
    EXPECT_EQ(fs::status(where).permissions(), fs::perms::owner_all);
    ASSERT_TRUE(make_folders(where / "a" / "b"));
    ASSERT_TRUE(write_file(where / "a" / "b" / "f", "x"));
    ASSERT_EQ(::chmod((where / "a" / "b").c_str(), 0), 0);
    ASSERT_EQ(::chmod((where / "a").c_str(), 0), 0);
  }
  EXPECT_FALSE(fs::exists(where));
}

TEST_F(Files, RemovingATemporaryFolderFollowsNoLink) {
  ASSERT_TRUE(make_folders(at("kept")));
  ASSERT_TRUE(write_file(at("kept") / "f", "x"));
  {
    auto const folder = TemporaryFolder::make(m_folder.path(), "t-");
    ASSERT_TRUE(folder);
    fs::create_directory_symlink(at("kept"), folder->path() / "link");
  }
  EXPECT_TRUE(fs::exists(at("kept") / "f"));
}

TEST_F(Files, OwnExecutableIsThisTest) { EXPECT_EQ(own_executable().filename(), "test_util"); }

}  // namespace
}  // namespace cuda_agent::util
