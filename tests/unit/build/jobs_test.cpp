#include "build/jobs.hpp"

#include <gtest/gtest.h>

#include "unit/build/shell.hpp"

namespace cuda_agent::build {
namespace {

using State = JobOutcome::State;

Job shell(const std::string& script, double timeout = 30) {
  Job job;
  job.label = script;
  job.timeout = timeout;
  job.command = [script] { return test::shell(script); };
  return job;
}

std::vector<JobOutcome> run(const std::vector<Job>& jobs, int parallel = 2) {
  util::SilentProgress progress;
  return run_jobs(jobs, parallel, progress, util::Deadline::after(std::chrono::seconds(60)));
}

TEST(Jobs, AllRunAndSayWhatTheyPrinted) {
  auto const outcomes = run({shell("echo one"), shell("echo two; echo three >&2"), shell("true")});
  ASSERT_EQ(outcomes.size(), 3U);
  for (auto const& outcome : outcomes) EXPECT_TRUE(outcome.ok());
  EXPECT_EQ(outcomes[0].output, "one\n");
  EXPECT_EQ(outcomes[1].output, "two\nthree\n");
}

TEST(Jobs, AFailureStopsWhatHasNotBegunAndWhatRunsOn) {
  auto const outcomes = run({shell("exit 3"), shell("sleep 50"), shell("true")});
  EXPECT_EQ(outcomes[0].status.code, 3);
  EXPECT_EQ(outcomes[1].state, State::not_run);
  EXPECT_EQ(outcomes[2].state, State::not_run);
}

TEST(Jobs, OneThatTakesTooLongIsStopped) {
  auto const outcomes = run({shell("sleep 50", 0.2)});
  EXPECT_EQ(outcomes[0].state, State::timed_out);
  EXPECT_LT(outcomes[0].seconds, 30);
}

TEST(Jobs, AnOptionalOneMayFail) {
  auto optional = shell("exit 1");
  optional.optional = true;
  auto const outcomes = run({optional, shell("true")}, 1);
  EXPECT_FALSE(outcomes[0].ok());
  EXPECT_TRUE(outcomes[1].ok());
}

TEST(Jobs, NothingWaitsForAnOptionalOneAfterAFailure) {
  auto optional = shell("sleep 50");
  optional.optional = true;
  auto const outcomes = run({optional, shell("exit 1")});
  EXPECT_EQ(outcomes[0].state, State::not_run);
  EXPECT_EQ(outcomes[1].status.code, 1);
}

TEST(Jobs, AJobAfterAnotherStartsWhenThatHasEnded) {
  bool first_ended = false;
  auto first = shell("true");
  first.succeeded = [&] { first_ended = true; };
  auto second = shell("true");
  second.after = 0;
  bool seen = false;
  second.command = [&, command = second.command] {
    seen = first_ended;
    return command();
  };
  EXPECT_TRUE(run({first, second})[1].ok());
  EXPECT_TRUE(seen);
}

TEST(Jobs, AToolThatIsNotThereIsAnError) {
  auto job = shell("true");
  job.command = [] {
    exec::Command command;
    command.argv = {"/nonexistent/compiler"};
    return command;
  };
  auto const outcome = run({job})[0];
  EXPECT_FALSE(outcome.ok());
}

}  // namespace
}  // namespace cuda_agent::build
