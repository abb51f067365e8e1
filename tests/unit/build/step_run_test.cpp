#include "build/step_run.hpp"

#include <chrono>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "unit/build/shell.hpp"
#include "util/deadline.hpp"

namespace cuda_agent::build {
namespace {

Step step(const std::string& script, std::vector<std::size_t> after = {}) {
  Step step;
  step.name = script;
  step.after = std::move(after);
  step.command = [script] { return test::shell(script); };
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
  test::Fifo const two_has_ended;
  StepRun run({step("cat " + two_has_ended.path() + "; echo one"),
               step("exec 3> " + two_has_ended.path() + "; echo two"), step("echo three", {0, 1})},
              2);
  auto const end = wait_for(run);
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->failed);
  EXPECT_EQ(run.output(), "one\ntwo\nthree\n");
}

TEST(StepRun, StepsThatDoNotNeedEachOtherRunAtTheSameTime) {
  test::Fifo const there;
  test::Fifo const back;
  StepRun run({step("echo > " + there.path() + "; read x < " + back.path()),
               step("read x < " + there.path() + "; echo > " + back.path())},
              2);
  auto const end = wait_for(run);
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->failed);
}

TEST(StepRun, AStepStartsWhenThoseBeforeItHaveEnded) {
  test::Fifo const gate;
  bool started = false;
  auto second = step("true", {0});
  second.command = [&started] {
    started = true;
    return test::shell("true");
  };
  StepRun run({step("read x < " + gate.path()), second}, 2);
  EXPECT_FALSE(run.poll());
  EXPECT_FALSE(started);
  std::ofstream(gate.path()) << "go\n";  // waits until the first step reads
  auto const end = wait_for(run);
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->failed);
  EXPECT_TRUE(started);
}

TEST(StepRun, OfTwoThatFailTheFirstOfTheListIsReported) {
  test::Fifo const second_has_ended;
  StepRun run({step("cat " + second_has_ended.path() + "; echo first; exit 3"),
               step("exec 3> " + second_has_ended.path() + "; echo second; exit 4"), step("echo third", {1})},
              2);
  auto const end = wait_for(run);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->failed, 0U);
  EXPECT_EQ(end->status.code, 3);
  EXPECT_EQ(run.output(), "first\n");
}

TEST(StepRun, AFailureWaitsForNoLaterStep) {
  test::Fifo const never_opened;
  StepRun run({step("echo first; exit 3"), step("read x < " + never_opened.path())}, 2);
  auto const end = wait_for(run);
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
