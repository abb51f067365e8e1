#include <chrono>

#include <sys/wait.h>
#include <unistd.h>

#include "unit/workspace/workspace_fixture.hpp"

namespace cuda_agent::workspace {

using LockTest = WorkspaceTest;
using namespace std::chrono_literals;

TEST_F(LockTest, TheSecondAskIsToldWhoHoldsTheWorkspaceAndStopsAtItsLimit) {
  auto const workspace = opened();
  auto const first = Lock::acquire(workspace, "cuda-agent run", util::Deadline::after(1s), {});
  ASSERT_TRUE(first);
  int told = 0;
  std::string holder;
  auto const second = Lock::acquire(workspace, "cuda-agent verify", util::Deadline::after(100ms),
                                    [&](const std::string& who) { holder = who, ++told; });
  EXPECT_EQ(told, 1);
  EXPECT_NE(holder.find("cuda-agent run"), std::string::npos) << holder;
  EXPECT_NE(holder.find(std::to_string(::getpid())), std::string::npos) << holder;
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().outcome, Outcome::timeout);
  EXPECT_EQ(second.error().fault, Fault::environment) << "waiting is never the candidate's fault";
  EXPECT_NE(second.error().message.find("cuda-agent run"), std::string::npos) << second.error().message;
}

TEST_F(LockTest, IsFreeOnceTheHolderIsGone) {
  auto const workspace = opened();
  { ASSERT_TRUE(Lock::acquire(workspace, "first", util::Deadline::after(1s), {})); }
  auto const waited = [](const std::string&) { FAIL() << "nobody holds it"; };
  EXPECT_TRUE(Lock::acquire(workspace, "second", util::Deadline::after(1s), waited));
}

TEST_F(LockTest, IsFreeOnceTheHolderHasDied) {
  auto const workspace = opened();
  auto const child = ::fork();
  if (child == 0) {
    auto const lock = Lock::acquire(workspace, "dying", util::Deadline::after(10s), {});
    ::_exit(lock ? 0 : 1);  // no destructor runs
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(Lock::acquire(workspace, "second", util::Deadline::after(1s), {}));
}

}  // namespace cuda_agent::workspace
