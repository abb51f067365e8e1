#include "selftest/workspace.hpp"

#include <filesystem>

#include "folder.hpp"

namespace cuda_agent::selftest {

namespace fs = std::filesystem;

namespace {

class MakeWorkspace : public InFolder {
 protected:
  void SetUp() override {
    InFolder::SetUp();
    write("tasks/case_binding.cpp", "common");
    write("tasks/scaled/model.py", "the task's");
    write("tasks/scaled/model_new.py", "the task's");
    write("tasks/scaled/kernels/scaled_cpu.cpp", "the task's");
    write("honest/plain/case.json", "{}");
    write("honest/plain/model_new.py", "the case's");
    write("honest/plain/__pycache__/x.pyc", "");
    m_case.folder = at("honest/plain");
    m_case.task = "scaled";
  }
  std::string made(const fs::path& name) const {
    return util::read_file(at("workspace") / name, 1000).value_or("not there");
  }

  Case m_case;
};

TEST_F(MakeWorkspace, PutsTheCaseOverItsTask) {
  auto const done = make_workspace(m_case, at("tasks"), at("workspace"));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(made("model.py"), "the task's");
  EXPECT_EQ(made("model_new.py"), "the case's");
  EXPECT_EQ(made("kernels/scaled_cpu.cpp"), "the task's");
  EXPECT_EQ(made("kernels/case_binding.cpp"), "common");
  EXPECT_EQ(made("case.json"), "not there");
  EXPECT_FALSE(fs::exists(at("workspace/__pycache__")));
}

TEST_F(MakeWorkspace, OwnBindingsStandAlone) {
  write("honest/plain/kernels/own_binding.cpp", "the case's");
  ASSERT_TRUE(make_workspace(m_case, at("tasks"), at("workspace")));
  EXPECT_EQ(made("kernels/own_binding.cpp"), "the case's");
  EXPECT_EQ(made("kernels/case_binding.cpp"), "not there");
  EXPECT_EQ(made("kernels/scaled_cpu.cpp"), "not there");
}

TEST_F(MakeWorkspace, MakesLinksOverFiles) {
  m_case.links = {{"model_new.py", "model.py"}};
  ASSERT_TRUE(make_workspace(m_case, at("tasks"), at("workspace")));
  EXPECT_EQ(fs::read_symlink(at("workspace/model_new.py")), "model.py");
}

TEST_F(MakeWorkspace, CopiesOfReadOnlyFilesCanBeChanged) {
  fs::permissions(at("honest/plain/model_new.py"), fs::perms::owner_read);
  fs::permissions(at("tasks/scaled/model_new.py"), fs::perms::owner_read);
  ASSERT_TRUE(make_workspace(m_case, at("tasks"), at("workspace")));
  auto const mode = fs::status(at("workspace/model_new.py")).permissions();
  EXPECT_NE(mode & fs::perms::owner_write, fs::perms::none);
}

TEST_F(MakeWorkspace, SaysWhatIsMissing) {
  m_case.task = "none";
  auto const done = make_workspace(m_case, at("tasks"), at("workspace"));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().outcome, Outcome::environment_error);
}

}  // namespace

}  // namespace cuda_agent::selftest
