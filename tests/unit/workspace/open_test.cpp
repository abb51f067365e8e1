#include <sys/stat.h>
#include <unistd.h>

#include "unit/workspace/workspace_fixture.hpp"

namespace cuda_agent::workspace {

namespace fs = std::filesystem;

using OpenWorkspace = WorkspaceTest;

TEST_F(OpenWorkspace, MakesAStateFolderThatHidesItselfFromGit) {
  auto const workspace = opened();
  EXPECT_EQ(workspace.root, fs::canonical(root()));
  EXPECT_TRUE(fs::is_directory(workspace.state));
  EXPECT_EQ(util::read_file(workspace.state / ".gitignore", 100), std::string("*\n"));
}

TEST_F(OpenWorkspace, NamesTheMissingFolderAndHowToMakeOne) {
  auto const workspace = open_workspace(root() / "not here");
  ASSERT_FALSE(workspace);
  EXPECT_EQ(exit_code(workspace.error().outcome), 3);
  EXPECT_NE(workspace.error().message.find("not here"), std::string::npos);
  EXPECT_NE(workspace.error().hints.front().find("cuda-agent init"), std::string::npos);
}

TEST_F(OpenWorkspace, RefusesAFolderWithNothingToJudge) {
  fs::create_directory(root() / "empty");
  auto const workspace = open_workspace(root() / "empty");
  ASSERT_FALSE(workspace);
  EXPECT_EQ(workspace.error().outcome, Outcome::environment_error);
  EXPECT_FALSE(fs::exists(root() / "empty" / ".cuda-agent")) << "an unrelated folder must stay as it is";
}

TEST_F(OpenWorkspace, RefusesAStateFolderThatIsALink) {
  fs::create_directory(root() / "elsewhere");
  fs::create_directory_symlink(root() / "elsewhere", root() / ".cuda-agent");
  auto const workspace = open_workspace(root());
  ASSERT_FALSE(workspace);
  EXPECT_NE(workspace.error().message.find("symbolic link"), std::string::npos);
}

TEST_F(OpenWorkspace, NamesPathAndReasonWhenItCannotWrite) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere; the end-to-end tests use a read-only mount";
  ASSERT_EQ(::chmod(root().c_str(), 0555), 0);
  auto const workspace = open_workspace(root());
  ASSERT_EQ(::chmod(root().c_str(), 0755), 0);
  ASSERT_FALSE(workspace);
  EXPECT_EQ(workspace.error().outcome, Outcome::environment_error);
  EXPECT_NE(workspace.error().message.find(".cuda-agent"), std::string::npos);
  EXPECT_NE(workspace.error().message.find("Permission denied"), std::string::npos);
}

}  // namespace cuda_agent::workspace
