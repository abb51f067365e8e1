// Each case runs a real command under the rules: they cannot be taken off again.
#include "exec/confinement.hpp"

#include <csignal>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "exec/child.hpp"
#include "util/files.hpp"

namespace cuda_agent::exec {
namespace {

namespace fs = std::filesystem;

class ConfinementTest : public testing::Test {
 protected:
  void SetUp() override {
    if (landlock_version() == 0) GTEST_SKIP() << "this kernel has no landlock";
    auto made = util::TemporaryFolder::make(fs::temp_directory_path(), "confinement-test-");
    ASSERT_TRUE(made);
    folder = std::move(*made);
    for (const char* name : {"shown", "hidden", "writable"}) fs::create_directory(folder.path() / name);
    for (const char* name : {"shown/file", "hidden/file"})
      ASSERT_TRUE(util::write_file(folder.path() / name, "words\n"));
  }

  /// What a shell under the rules prints; "exit code N" behind it unless that is 0.
  std::string shell(const std::string& text) {
    Command command;
    command.argv = {"/bin/sh", "-c", text};
    command.env = {{"PATH", "/usr/bin:/bin"}, {"FOLDER", folder.path().string()}, {"LC_ALL", "C"}};
    command.confinement = Confinement{{folder.path() / "shown"}, {folder.path() / "writable"}, {}};
    auto const done = run(command, util::Deadline::after(std::chrono::seconds(20)));
    if (!done) return done.error().message;
    return done->output + (done->status.ok() ? "" : done->status.describe());
  }

  util::TemporaryFolder folder;
};

TEST_F(ConfinementTest, WhatIsShownCanBeReadAndNotChanged) {
  EXPECT_EQ(shell("cat $FOLDER/shown/file"), "words\n");
  EXPECT_NE(shell("echo more >> $FOLDER/shown/file").find("Permission denied"), std::string::npos);
  EXPECT_NE(shell("rm $FOLDER/shown/file").find("Permission denied"), std::string::npos);
}

TEST_F(ConfinementTest, WhatIsNotShownIsOutOfReach) {
  EXPECT_NE(shell("cat $FOLDER/hidden/file").find("Permission denied"), std::string::npos);
  EXPECT_NE(shell("ls $FOLDER/hidden").find("Permission denied"), std::string::npos);
  EXPECT_NE(shell("echo words > /tmp/confinement-test-litter").find("Permission denied"), std::string::npos);
  EXPECT_FALSE(fs::exists("/tmp/confinement-test-litter"));
}

TEST_F(ConfinementTest, WhatOnlyRootMayReadIsOutOfReach) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can read it outside";
  if (!fs::exists("/etc/shadow")) GTEST_SKIP() << "there is no /etc/shadow here";
  EXPECT_NE(shell("cat /etc/shadow").find("Permission denied"), std::string::npos);
  EXPECT_EQ(shell("cat /etc/passwd >/dev/null && ls /etc >/dev/null && echo good"), "good\n");
}

TEST_F(ConfinementTest, AWritableFolderIsWritable) {
  EXPECT_EQ(
      shell("mkdir $FOLDER/writable/new && echo words > $FOLDER/writable/new/file && cat $FOLDER/writable/new/file && "
            "rm -r $FOLDER/writable/new"),
      "words\n");
}

// An ordinary user keeps a bounding set, which no_new_privs makes useless.
TEST_F(ConfinementTest, RootHasNoCapabilities) {
  auto const sets = std::string(::geteuid() == 0 ? "Eff Prm Bnd" : "Eff Prm");
  for (auto const& set : {sets.substr(0, 3), sets.substr(4, 3)}) {
    EXPECT_NE(shell("grep Cap" + set + ": /proc/self/status").find("0000000000000000"), std::string::npos) << set;
  }
}

TEST_F(ConfinementTest, OtherProcessesAreOutOfReach) {
  auto const own = std::to_string(::getpid());
  EXPECT_NE(shell("cat /proc/" + own + "/environ").find("Permission denied"), std::string::npos);
  if (landlock_version() < 6) GTEST_SKIP() << "signals are confined from version 6 on";
  EXPECT_NE(shell("kill -0 " + own).find("not permitted"), std::string::npos);
}

}  // namespace
}  // namespace cuda_agent::exec
