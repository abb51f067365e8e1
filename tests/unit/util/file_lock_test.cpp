#include "util/file_lock.hpp"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/files.hpp"

namespace cuda_agent::util {
namespace {

namespace fs = std::filesystem;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

class FileLocks : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TemporaryFolder::make(fs::temp_directory_path(), "lock-test-");
    ASSERT_TRUE(made);
    m_folder = std::move(*made);
  }
  fs::path file() const { return m_folder.path() / "lock"; }
  Result<FileLock> take(Deadline deadline, const std::function<void(const std::string&)>& waiting = {}) const {
    return FileLock::acquire(file(), "run agent_workdir", deadline, waiting);
  }

  TemporaryFolder m_folder;
};

TEST_F(FileLocks, IsTakenAtOnceWhenFreeAndNamesItsHolder) {
  bool waited = false;
  auto lock = take(Deadline::after(5s), [&](auto const&) { waited = true; });
  ASSERT_TRUE(lock);
  EXPECT_FALSE(waited);
  auto const text = read_file(file(), 1000);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("pid " + std::to_string(::getpid()) + ": run agent_workdir, since 20"), std::string::npos);
  lock->release();
  EXPECT_EQ(read_file(file(), 1000), "") << "nobody holds it, nobody is named";
}

TEST_F(FileLocks, TheSecondWaitsAndHearsForWhomAndGetsItAfterwards) {
  auto first = take(Deadline::after(5s));
  ASSERT_TRUE(first);
  int calls = 0;
  std::string holder;
  auto const second = take(Deadline::after(5s), [&](const std::string& text) {
    ++calls;
    holder = text;
    first->release();
  });
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_TRUE(second->held());
  EXPECT_EQ(calls, 1);
  EXPECT_NE(holder.find("run agent_workdir"), std::string::npos) << holder;
}

TEST_F(FileLocks, GivesUpAtTheDeadlineAndSaysWhoHoldsIt) {
  auto const first = take(Deadline::after(5s));
  ASSERT_TRUE(first);
  auto const second = take(Deadline::after(50ms));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().outcome, Outcome::timeout);
  EXPECT_EQ(second.error().fault, Fault::environment);
  EXPECT_NE(second.error().message.find("run agent_workdir"), std::string::npos) << second.error().message;
}

TEST_F(FileLocks, IsFreeOnceItsObjectIsGone) {
  { ASSERT_TRUE(take(Deadline::after(5s))); }
  EXPECT_TRUE(take(Deadline::after(0s)));
}

TEST_F(FileLocks, MovingKeepsItHeld) {
  auto first = take(Deadline::after(5s));
  ASSERT_TRUE(first);
  FileLock moved = std::move(*first);
  EXPECT_FALSE(take(Deadline::after(0s)));
  moved = FileLock();
  EXPECT_TRUE(take(Deadline::after(0s)));
}

TEST_F(FileLocks, ALinkInItsPlaceIsRefused) {
  ASSERT_TRUE(write_file(m_folder.path() / "precious", "x"));
  fs::create_symlink(m_folder.path() / "precious", file());
  auto const lock = take(Deadline::after(1s));
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().outcome, Outcome::environment_error);
  EXPECT_EQ(read_file(m_folder.path() / "precious", 10), "x");
}

TEST_F(FileLocks, WhereOthersWriteAnotherNameOfAFileIsRefused) {
  ASSERT_TRUE(write_file(m_folder.path() / "precious", "x"));
  fs::create_hard_link(m_folder.path() / "precious", file());
  fs::permissions(m_folder.path(), fs::perms(01777));
  auto const lock = take(Deadline::after(1s));
  ASSERT_FALSE(lock);
  EXPECT_NE(lock.error().message.find("not a file of its own"), std::string::npos) << lock.error().message;
  EXPECT_EQ(read_file(m_folder.path() / "precious", 10), "x");
}

TEST_F(FileLocks, ALinkedCopyOfAFolderOfOnesOwnCanBeLocked) {
  { ASSERT_TRUE(take(Deadline::after(1s))); }
  fs::create_hard_link(file(), m_folder.path() / "copy");  // cp -al
  EXPECT_TRUE(take(Deadline::after(1s)));
}

TEST_F(FileLocks, OthersCanOpenItWhereTheyWriteAndNowhereElse) {
  auto const before = ::umask(077);
  { auto const lock = take(Deadline::after(1s)); }
  EXPECT_EQ(fs::status(file()).permissions(), fs::perms(0600));
  fs::remove(file());
  fs::permissions(m_folder.path(), fs::perms(01777));
  { auto const lock = take(Deadline::after(1s)); }
  EXPECT_EQ(fs::status(file()).permissions(), fs::perms(0666));
  ::umask(before);
}

}  // namespace
}  // namespace cuda_agent::util
