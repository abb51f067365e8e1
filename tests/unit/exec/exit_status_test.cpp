#include "exec/exit_status.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::exec {
namespace {

siginfo_t ended(int how, int status) {
  siginfo_t info{};
  info.si_code = how;
  info.si_status = status;
  return info;
}

TEST(ExitStatus, DescribesCodesAndSignals) {
  EXPECT_EQ((ExitStatus{3, 0}.describe()), "exit code 3");
  EXPECT_EQ((ExitStatus{0, SIGSEGV}.describe()), "killed by signal 11 (SIGSEGV)");
  EXPECT_EQ((ExitStatus{0, 64}.describe()), "killed by signal 64");
  EXPECT_TRUE(ExitStatus{}.ok());
  EXPECT_FALSE((ExitStatus{0, SIGKILL}.ok()));
}

TEST(ExitStatus, BubblewrapsCodesAreSignalsAgain) {
  EXPECT_EQ(exit_status(ended(CLD_EXITED, 139), true).signal, SIGSEGV);
  EXPECT_EQ(exit_status(ended(CLD_EXITED, 139), false).code, 139);
  EXPECT_EQ(exit_status(ended(CLD_EXITED, 128), true).code, 128);
  EXPECT_EQ(exit_status(ended(CLD_EXITED, 255), true).code, 255);
  EXPECT_EQ(exit_status(ended(CLD_DUMPED, SIGABRT), false).signal, SIGABRT);
}

}  // namespace
}  // namespace cuda_agent::exec
