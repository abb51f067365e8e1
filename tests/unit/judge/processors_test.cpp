#include "judge/processors.hpp"

#include <csignal>
#include <string>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cuda_agent::judge {
namespace {

int allowed_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
}

/// A process that waits to be killed.
class Sleeper {
 public:
  Sleeper() : m_pid(::fork()) {
    if (m_pid == 0) {
      for (;;) ::pause();
    }
  }
  ~Sleeper() {
    ::kill(m_pid, SIGKILL);
    ::waitpid(m_pid, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  pid_t pid() const { return m_pid; }
  int processors() const {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    return ::sched_getaffinity(m_pid, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 0;
  }

 private:
  pid_t m_pid;
};

TEST(ProcessorClaim, OneIsLeftForTheSupervisor) {
  EXPECT_FALSE(ProcessorClaim::take(allowed_processors()));
  EXPECT_FALSE(ProcessorClaim::take(0));
}

TEST(ProcessorClaim, TwoAsksDoNotMeetAndWhatIsGivenBackCanBeTakenAgain) {
  if (allowed_processors() < 2) GTEST_SKIP() << "there is one processor";
  auto first = ProcessorClaim::take(1);
  if (!first) GTEST_SKIP() << "other asks on this machine have claimed all";
  auto const mine = first->processors();
  if (auto const second = ProcessorClaim::take(1)) {
    EXPECT_NE(second->processors(), mine);
  }
  std::vector<ProcessorClaim> all;
  while (auto more = ProcessorClaim::take(1)) {
    all.push_back(std::move(*more));
    ASSERT_LT(static_cast<int>(all.size()), allowed_processors());
  }
  all.clear();
  first.reset();
  EXPECT_TRUE(ProcessorClaim::take(1));
}

TEST(ProcessorClaim, ConfinesAProcessAndLetsItGo) {
  auto const claim = ProcessorClaim::take(1);
  if (!claim) GTEST_SKIP() << "there is one processor, or other asks on this machine have claimed all";
  Sleeper const sleeper;
  claim->confine(sleeper.pid());
  EXPECT_EQ(sleeper.processors(), 1);
  ProcessorClaim::let_go(sleeper.pid());
  EXPECT_EQ(sleeper.processors(), allowed_processors());
  claim->confine(0x3FFFFFFF);  // nobody
}

}  // namespace
}  // namespace cuda_agent::judge
