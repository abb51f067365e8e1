#include "selftest/command.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace {

std::string line(const Case& one, const std::vector<std::string>& off, const std::string& python = {}) {
  return util::join(judge_command(one, off, "/bin/judge", "/w", python), " ");
}

}  // namespace

TEST(JudgeCommand, SwitchesOffWhatItIsTold) {
  Case const one;
  EXPECT_EQ(line(one, {}), "/bin/judge verify /w --device cpu --timeout 600 --quiet --call-timeout 6 --json");
  EXPECT_EQ(line(one, {"--policy", "none"}),
            "/bin/judge verify /w --device cpu --timeout 600 --quiet --call-timeout 6 --json --policy none");
}

TEST(JudgeCommand, GivesEachCommandWhatItTakesAndTheCasesFlagsLast) {
  Case one;
  one.kind = Kind::honest;
  one.command = "run";
  one.text = true;
  one.flags = {"--call-timeout", "2"};
  EXPECT_EQ(line(one, {}, "/p"),
            "/bin/judge run /w --device cpu --timeout 600 --quiet --call-timeout 6 --baseline eager --python /p "
            "--call-timeout 2");
  one.command = "compile";
  one.flags.clear();
  one.needs_cuda = true;
  EXPECT_EQ(line(one, {}), "/bin/judge compile /w --device cuda --timeout 600 --quiet");
}

}  // namespace cuda_agent::selftest
