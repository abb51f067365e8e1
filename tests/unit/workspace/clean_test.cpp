#include "unit/workspace/workspace_fixture.hpp"

namespace cuda_agent::workspace {

namespace fs = std::filesystem;

using CleanWorkspace = WorkspaceTest;

TEST_F(CleanWorkspace, RemovesSnapshotsWithReadOnlyFolders) {
  auto const workspace = opened();
  auto const parent = clean_scratch_parent(workspace);
  ASSERT_TRUE(parent);
  ASSERT_TRUE(take_snapshot(workspace, *parent / "snapshot", {}));
  ASSERT_TRUE(clean_scratch_parent(workspace));
  EXPECT_TRUE(fs::is_empty(*parent));
}

TEST_F(CleanWorkspace, KeepsTheHistoryUnlessAsked) {
  write(".cuda-agent/history.jsonl", "{}\n");
  write(".cuda-agent/build/cuda_extension.so", "x");
  auto const workspace = opened();
  auto removed = clean(workspace, {});
  ASSERT_TRUE(removed);
  EXPECT_EQ(*removed, std::vector<std::string>{".cuda-agent/build"});
  EXPECT_TRUE(fs::exists(workspace.state / "history.jsonl"));
  removed = clean(workspace, {.history = true});
  ASSERT_TRUE(removed);
  EXPECT_EQ(*removed, std::vector<std::string>{".cuda-agent/history.jsonl"});
}

TEST_F(CleanWorkspace, RemovesALinkAndNotWhatItPointsTo) {
  write("precious/file", "x");
  auto const workspace = opened();
  fs::create_directory_symlink(root() / "precious", workspace.state / "build");
  ASSERT_TRUE(clean(workspace, {}));
  EXPECT_TRUE(fs::exists(root() / "precious" / "file"));
  EXPECT_FALSE(fs::exists(fs::symlink_status(workspace.state / "build")));
}

}  // namespace cuda_agent::workspace
