#include "build/step_run.hpp"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "util/deadline.hpp"

namespace cuda_agent::build {
namespace {

Step step(const std::string& script, std::vector<std::size_t> after = {}) {
  Step step;
  step.name = script;
  step.after = std::move(after);
  step.command = [script] {
    exec::Command command;
    command.argv = {"/bin/sh", "-c", script};
    command.env = {{"PATH", "/usr/bin:/bin"}};
    return command;
  };
  return step;
}

std::optional<StepRun::End> wait_for(StepRun& run) {
  auto const deadline = util::Deadline::after(std::chrono::seconds(30));
  while (!deadline.expired()) {
    if (auto end = run.poll()) return end;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return std::nullopt;
}

TEST(StepRun, TheOutputIsInTheOrderOfTheListWheneverTheStepsEnd) {
  StepRun run({step("sleep 0.2; echo one"), step("echo two"), step("echo three", {0, 1})}, 2);
  auto const end = wait_for(run);
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->failed);
  EXPECT_EQ(run.output(), "one\ntwo\nthree\n");
}

TEST(StepRun, StepsThatDoNotNeedEachOtherRunAtTheSameTime) {
  // Each waits for what the other one does.
  std::string const folder = testing::TempDir() + "step_run_" + std::to_string(::getpid());
  auto const meet = [&](const std::string& mine, const std::string& other) {
    return step("mkdir -p " + folder + "; touch " + folder + "/" + mine + "; for i in $(seq 200); do [ -e " + folder +
                "/" + other + " ] && exit 0; sleep 0.05; done; exit 1");
  };
  StepRun run({meet("a", "b"), meet("b", "a"), step("rm -r " + folder, {0, 1})}, 2);
  auto const end = wait_for(run);
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->failed);
}

TEST(StepRun, AStepStartsWhenThoseBeforeItHaveEnded) {
  std::string const file = testing::TempDir() + "step_run_file_" + std::to_string(::getpid());
  StepRun run({step("sleep 0.1; touch " + file), step("[ -e " + file + " ] && rm " + file, {0})}, 2);
  auto const end = wait_for(run);
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->failed);
}

TEST(StepRun, OfTwoThatFailTheFirstOfTheListIsReported) {
  StepRun run({step("sleep 0.2; echo first; exit 3"), step("echo second; exit 4"), step("echo third", {1})}, 2);
  auto const end = wait_for(run);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->failed, 0U);
  EXPECT_EQ(end->status.code, 3);
  EXPECT_EQ(run.output(), "first\n");
}

TEST(StepRun, AFailureWaitsForNoLaterStep) {
  StepRun run({step("echo first; exit 3"), step("sleep 50")}, 2);
  auto const end = wait_for(run);  // gives up before the second one ends
  ASSERT_TRUE(end);
  EXPECT_EQ(end->failed, 0U);
}

TEST(StepRun, AStepWithoutACommandEndsTheRun) {
  auto refused = step("true", {0});
  refused.command = [] { return std::nullopt; };
  StepRun run({step("echo one"), refused}, 2);
  auto const end = wait_for(run);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->failed, 1U);
  EXPECT_TRUE(end->refused);
}

TEST(StepRun, AToolThatIsNotThereIsAnError) {
  auto missing = step("true");
  missing.command = [] {
    exec::Command command;
    command.argv = {"/nonexistent/tool"};
    return command;
  };
  StepRun run({missing}, 1);
  auto const end = wait_for(run);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->error);
}

}  // namespace
}  // namespace cuda_agent::build
