#include "cli/installation.hpp"

#include <gtest/gtest.h>

#include "util/files.hpp"

namespace cuda_agent::cli {

namespace fs = std::filesystem;

class FindInstallation : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = util::TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-test-");
    ASSERT_TRUE(folder);
    m_folder = std::move(*folder);
  }
  fs::path made(const fs::path& name) const {
    fs::create_directories(m_folder.path() / name);
    return m_folder.path() / name;
  }
  fs::path prefix() const { return m_folder.path(); }

 private:
  util::TemporaryFolder m_folder;
};

TEST_F(FindInstallation, WorksFromThePlaceOfTheBinary) {
  for (auto const* const name : {"support", "worker", "templates", "example", "policy"})
    made(fs::path("share/cuda-agent") / name);
  auto const found = find_installation(prefix() / "bin" / "cuda-agent");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->judge.support, prefix() / "share/cuda-agent/support");
  EXPECT_EQ(found->judge.worker_modules, prefix() / "lib/cuda-agent/worker-modules");
  EXPECT_EQ(found->selftest, prefix() / "share/cuda-agent/selftest") << "which need not be there";
}

TEST_F(FindInstallation, FollowsTheListOfABuildTree) {
  auto const source = made("source");
  auto const text = R"({"support": ")" + source.string() + R"(", "worker": ")" + source.string() +
                    R"(", "templates": ")" + source.string() + R"(", "example": ")" + source.string() +
                    R"(", "policy": ")" + source.string() + R"(", "worker_modules": "/not/there/yet"})";
  ASSERT_TRUE(util::write_file(made("build") / "cuda-agent.layout.json", text));
  auto const found = find_installation(prefix() / "build" / "cuda-agent");
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->judge.worker_sources, source);
}

TEST_F(FindInstallation, NamesTheMissingFolder) {
  made("share/cuda-agent/support");
  auto const found = find_installation(prefix() / "bin" / "cuda-agent");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().outcome, Outcome::environment_error);
  EXPECT_NE(found.error().message.find("share/cuda-agent/worker"), std::string::npos) << found.error().message;
}

}  // namespace cuda_agent::cli
