#include "util/environment.hpp"

#include <cstdlib>
#include <regex>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "util/files.hpp"
#include "util/time.hpp"

namespace cuda_agent::util {
namespace {

namespace fs = std::filesystem;

TEST(Environment, TellsUnsetFromEmpty) {
  ASSERT_EQ(::setenv("CUDA_AGENT_TEST_EMPTY", "", 1), 0);
  EXPECT_EQ(get_env("CUDA_AGENT_TEST_EMPTY"), "");
  EXPECT_EQ(get_env("CUDA_AGENT_TEST_UNSET"), std::nullopt);
  EXPECT_EQ(whole_environment().at("CUDA_AGENT_TEST_EMPTY"), "");
}

TEST(Environment, FindsTheFirstExecutableOnPathAndNoRelativeOne) {
  auto const folder = TemporaryFolder::make(fs::temp_directory_path(), "path-test-");
  ASSERT_TRUE(folder);
  fs::path const first = folder->path() / "first";
  fs::path const second = folder->path() / "second";
  for (auto const& place : {first, second}) {
    ASSERT_TRUE(make_folders(place));
    ASSERT_TRUE(write_file(place / "tool", ""));
  }
  ASSERT_EQ(::chmod((second / "tool").c_str(), 0755), 0);
  std::string const before = get_env("PATH").value_or("");
  ASSERT_EQ(::setenv("PATH", (".::" + first.string() + ":" + second.string()).c_str(), 1), 0);
  EXPECT_EQ(find_executable("tool"), second / "tool") << "a file that is not executable does not count";
  EXPECT_EQ(find_executable("no-such-tool"), std::nullopt);
  EXPECT_EQ(find_executable(""), std::nullopt);
  EXPECT_EQ(find_executable((second / "tool").string()), second / "tool");
  EXPECT_EQ(find_executable((first / "tool").string()), std::nullopt);
  ASSERT_EQ(::setenv("PATH", before.c_str(), 1), 0);
}

TEST(Time, IsIso8601InUtc) {
  EXPECT_TRUE(std::regex_match(utc_now(), std::regex(R"(20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\dZ)")));
}

}  // namespace
}  // namespace cuda_agent::util
