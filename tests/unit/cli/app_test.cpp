#include "cli/app.hpp"

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "util/files.hpp"

namespace cuda_agent::cli {

namespace {

struct Ran {
  int code = 0;
  std::string out;
  std::string err;
};

Ran ran(const std::vector<std::string>& words) {
  std::ostringstream out;
  std::ostringstream err;
  Console console{out, err, false, false};
  auto const code = run_line(words, console);
  return {code, out.str(), err.str()};
}

testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in:\n" << text;
}

}  // namespace

TEST(CommandLine, AloneItPrintsHelp) {
  auto const result = ran({});
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(has(result.out, "doctor"));
  EXPECT_FALSE(has(result.out, "worker-module")) << "an internal command is not listed";
}

// A session is the running program, started again: here that would be these tests.
TEST(CommandLine, AnAskOfAnotherProgramStartsNoSession) {
  auto const folder = util::TemporaryFolder::make(testing::TempDir(), "no-session-");
  ASSERT_TRUE(folder);
  auto const sessions = folder->path() / "s";
  ::setenv("CUDA_AGENT_SESSIONS", sessions.c_str(), 1);
  for (auto const* const flag : {"--session", "--no-session"}) {
    EXPECT_NE(ran({"verify", (folder->path() / "nowhere").string(), "--device", "cpu", flag}).code, 0);
    EXPECT_FALSE(std::filesystem::exists(sessions));
  }
  ::unsetenv("CUDA_AGENT_SESSIONS");
}

TEST(CommandLine, PrintsItsVersion) {
  auto const result = ran({"--version"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "cuda-agent " + version() + "\n");
}

TEST(CommandLine, HelpOfACommandNamesFlagsDefaultsAndUnits) {
  auto const result = ran({"run", "--help"});
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(has(result.out, "--trials N"));
  EXPECT_TRUE(has(result.out, "[default: 5]"));
  EXPECT_TRUE(has(result.out, "seconds"));
  EXPECT_TRUE(has(result.out, "--baseline eager|compiled|both"));
}

TEST(CommandLine, SuggestsTheCommandThatWasMeant) {
  auto const result = ran({"complie"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.err, "no command 'complie'; did you mean 'compile'?"));
  EXPECT_EQ(result.out, "");
}

TEST(CommandLine, SuggestsTheFlagThatWasMeant) {
  auto result = ran({"run", "--trails", "3"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.err, "cuda-agent run has no flag '--trails'; did you mean '--trials'?"));
  result = ran({"verify", "--trails=3"});
  EXPECT_TRUE(has(result.err, "did you mean '--trials'?"));
  result = ran({"run", "-json"});
  EXPECT_TRUE(has(result.err, "did you mean '--json'?"));
  result = ran({"--verison"});
  EXPECT_TRUE(has(result.err, "did you mean '--version'?"));
}

TEST(CommandLine, AFlagOfAnotherCommandIsUnknown) {
  auto const result = ran({"compile", "--trials", "3"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(has(result.err, "cuda-agent compile has no flag '--trials'"));
}

TEST(CommandLine, MistakesAreOneJsonObjectWhenThatIsAsked) {
  for (auto const& words : std::vector<std::vector<std::string>>{
           {"run", "--trails", "3", "--json"}, {"rnu", "--json"}, {"run", "--trials", "0", "--json"}, {"--json"}}) {
    auto const result = ran(words);
    EXPECT_EQ(result.code, 2);
    auto const verdict = nlohmann::json::parse(result.out);
    EXPECT_EQ(verdict.at("outcome"), "usage_error");
    EXPECT_EQ(verdict.at("exit_code"), 2);
    EXPECT_NE(verdict.at("message"), "");
  }
}

TEST(CommandLine, RefusesTooManyFoldersAndContradictions) {
  EXPECT_EQ(ran({"run", "a", "b"}).code, 2);
  EXPECT_EQ(ran({"run", "-q", "-v"}).code, 2);
  EXPECT_EQ(ran({"completion", "tcsh"}).code, 2);
}

TEST(CommandLine, RefusesWhatIsNoArchitecture) {
  for (auto const* const arch : {"ninety", "sm_", "90b", ""}) {
    auto const result = ran({"compile", "/no/such/folder", "--arch", arch});
    EXPECT_EQ(result.code, 2) << arch;
    EXPECT_TRUE(has(result.err, "is no architecture such as 90a")) << result.err;
  }
  EXPECT_EQ(ran({"compile", "/no/such/folder", "--arch", "9.0a"}).code, 3);
}

TEST(CommandLine, PrintsTheSchema) {
  auto const result = ran({"schema"});
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(nlohmann::json::parse(result.out).is_object());
}

TEST(CommandLine, AMissingWorkspaceIsAVerdictToo) {
  auto const result = ran({"run", "/no/such/folder", "--json", "-q"});
  EXPECT_EQ(result.code, 3);
  auto const verdict = nlohmann::json::parse(result.out);
  EXPECT_EQ(verdict.at("outcome"), "environment_error");
  EXPECT_EQ(verdict.at("command"), "run");
}

}  // namespace cuda_agent::cli
