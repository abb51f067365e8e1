// A workspace in a temporary folder.
#pragma once

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "util/files.hpp"
#include "workspace/workspace.hpp"

namespace cuda_agent::workspace {

class WorkspaceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = util::TemporaryFolder::make(std::filesystem::temp_directory_path(), "cuda-agent-test-");
    ASSERT_TRUE(folder);
    m_folder = std::move(*folder);
    write("model.py", "class Model: pass\n");
    write("model_new.py", "class ModelNew: pass\n");
    write("kernels/a.cu", "// a\n");
    write("kernels/a_cpu.cpp", "// a, C++\n");
  }
  void TearDown() override { (void)remove_tree(m_folder.path()); }

  std::filesystem::path root() const { return m_folder.path() / "work"; }
  std::filesystem::path copy() const { return m_folder.path() / "copy"; }

  void write(const std::string& name, const std::string& content) const {
    ASSERT_TRUE(util::make_folders((root() / name).parent_path()));
    ASSERT_TRUE(util::write_file(root() / name, content));
  }
  Workspace opened() const {
    auto workspace = open_workspace(root());
    EXPECT_TRUE(workspace) << workspace.error().message;
    return workspace.value_or(Workspace{});
  }

 private:
  util::TemporaryFolder m_folder;
};

}  // namespace cuda_agent::workspace
