#include "build/toolchain.hpp"

#include <gtest/gtest.h>

#include "build/tool_environment.hpp"
#include "unit/build/sample.hpp"

namespace cuda_agent::build {
namespace {

using test::Variable;

util::Deadline soon() { return util::Deadline::after(std::chrono::seconds(60)); }

TEST(ToolchainSearch, FindsAHostCompilerAndItsIdentity) {
  Variable const cxx("CXX", std::nullopt);
  auto const toolchain = find_toolchain(false, soon());
  ASSERT_TRUE(toolchain) << toolchain.error().message;
  EXPECT_TRUE(toolchain->host.executable.is_absolute());
  EXPECT_FALSE(toolchain->host.version.empty());
  EXPECT_FALSE(toolchain->nvcc);
}

TEST(ToolchainSearch, NoCompilerIsTheEnvironmentsFault) {
  Variable const cxx("CXX", std::nullopt);
  Variable const path("PATH", "/nonexistent");
  auto const toolchain = find_toolchain(false, soon());
  ASSERT_FALSE(toolchain);
  EXPECT_EQ(toolchain.error().outcome, Outcome::environment_error);
  EXPECT_FALSE(toolchain.error().hints.empty());
}

TEST(ToolchainSearch, CxxDecidesAndAWrongOneIsNamed) {
  Variable const cxx("CXX", "no-such-compiler");
  auto const toolchain = find_toolchain(false, soon());
  ASSERT_FALSE(toolchain);
  EXPECT_NE(toolchain.error().message.find("no-such-compiler"), std::string::npos);
}

TEST(ToolchainSearch, NvccMissingThenThere) {
  auto const folder = util::TemporaryFolder::make(std::filesystem::temp_directory_path(), "cuda-agent-home-");
  ASSERT_TRUE(folder);
  Variable const home("CUDA_HOME", folder->path().string());
  auto const without = find_toolchain(true, soon());
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().outcome, Outcome::environment_error);
  EXPECT_NE(without.error().message.find(folder->path().string()), std::string::npos);
  std::filesystem::create_directories(folder->path() / "bin");
  auto const nvcc = folder->path() / "bin" / "nvcc";
  ASSERT_TRUE(util::write_file(nvcc, "#!/bin/sh\necho nvcc: a compiler\necho tools, release 13.0, V13.0.88\n"));
  std::filesystem::permissions(nvcc, std::filesystem::perms::owner_all);
  auto const with = find_toolchain(true, soon());
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_EQ(with->nvcc->version, "13.0.88");
  EXPECT_EQ(with->cuda_home, std::filesystem::canonical(folder->path()));
}

TEST(ToolEnvironment, HoldsNothingOfTheCallers) {
  Variable const nvcc("NVCC_APPEND_FLAGS", "-O0");
  Variable const include("CPATH", "/tmp");
  auto const environment = tool_environment({"/opt/tools/bin/g++"}, "/work");
  EXPECT_EQ(environment.size(), 4U);
  EXPECT_EQ(environment.at("PATH").rfind("/opt/tools/bin:", 0), 0U);
  EXPECT_EQ(environment.at("TMPDIR"), "/work");
}

}  // namespace
}  // namespace cuda_agent::build
