#include "workspace/changes.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "util/files.hpp"

namespace cuda_agent::workspace {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

class Changes : public testing::Test {
 protected:
  Changes() {
    write(root() / "model.py", "a");
    write(root() / "model_new.py", "b");
    write(root() / "kernels" / "deep" / "a.cu", "c");
  }
  fs::path root() const { return m_folder->path(); }
  FileStates look(const fs::path& task = {}) const { return file_states(root(), task); }

  Result<util::TemporaryFolder> m_folder = util::TemporaryFolder::make(fs::temp_directory_path(), "changes-");
};

TEST_F(Changes, NothingHasChangedWhenNothingWasSaved) { EXPECT_TRUE(changed_files(look(), look()).empty()); }

TEST_F(Changes, NamesWhatIsWrittenAddedRenamedOrRemoved) {
  auto const before = look();
  write(root() / "model_new.py", "other");
  write(root() / "kernels" / "b.cu", "new");
  fs::remove(root() / "kernels" / "deep" / "a.cu");
  EXPECT_EQ(changed_files(before, look()),
            (std::vector<std::string>{"kernels/b.cu", "kernels/deep/a.cu", "model_new.py"}));
}

TEST_F(Changes, AFileThatIsReplacedByOneOfTheSameSizeAndTimeHasChanged) {
  auto const before = look();
  auto const time = fs::last_write_time(root() / "model_new.py");
  write(root() / ".new", "x");
  fs::last_write_time(root() / ".new", time);
  fs::rename(root() / ".new", root() / "model_new.py");
  EXPECT_EQ(changed_files(before, look()), std::vector<std::string>{"model_new.py"});
}

TEST_F(Changes, WhatNoSnapshotTakesDoesNotCount) {
  auto const before = look();
  write(root() / "notes.txt", "x");
  write(root() / "kernels" / ".a.cu.swp", "x");
  write(root() / "kernels" / "__pycache__" / "a.pyc", "x");
  write(root() / ".cuda-agent" / "history.jsonl", "x");
  EXPECT_TRUE(changed_files(before, look()).empty());
}

TEST_F(Changes, TheTaskIsLookedForWhereItIs) {
  auto const other = root() / "task";
  write(other / "model.py", "a");
  auto const before = look(other);
  write(root() / "model.py", "not the one");
  EXPECT_TRUE(changed_files(before, look(other)).empty());
  write(other / "model.py", "the one");
  EXPECT_EQ(changed_files(before, look(other)), std::vector<std::string>{"model.py"});
}

TEST_F(Changes, AMissingWorkspaceHasNoFilesAndALinkIsNotFollowed) {
  EXPECT_TRUE(file_states(root() / "gone", {}).empty());
  fs::create_directory_symlink(root(), root() / "kernels" / "loop");
  auto const states = look();
  EXPECT_TRUE(states.contains("kernels/loop"));
  EXPECT_FALSE(states.contains("kernels/loop/model.py"));
}

}  // namespace
}  // namespace cuda_agent::workspace
