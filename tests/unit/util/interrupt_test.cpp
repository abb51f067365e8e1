#include "util/interrupt.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <poll.h>

#include "util/file_lock.hpp"
#include "util/files.hpp"

namespace cuda_agent::util {
namespace {

using std::chrono_literals::operator""s;

bool readable(int fd) {
  pollfd wait{fd, POLLIN, 0};
  return ::poll(&wait, 1, 0) == 1;
}

// Handlers are for the life of a process, so each of these runs in one of its own.
TEST(InterruptDeathTest, ASignalSetsTheFlagAndWakesThePoll) {
  EXPECT_EXIT(
      {
        install_interrupt_handlers();
        bool good = !interrupted() && !readable(interrupt_fd());
        std::raise(SIGTERM);
        good = good && interrupted() && readable(interrupt_fd());
        good = good && interrupted_error().outcome == Outcome::interrupted;
        std::_Exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(InterruptDeathTest, SigpipeDoesNotKill) {
  EXPECT_EXIT(
      {
        install_interrupt_handlers();
        std::raise(SIGPIPE);
        std::_Exit(interrupted() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(InterruptDeathTest, AnIgnoredHangupStaysIgnored) {
  EXPECT_EXIT(
      {
        std::signal(SIGHUP, SIG_IGN);
        install_interrupt_handlers();
        std::raise(SIGHUP);
        std::_Exit(interrupted() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(InterruptDeathTest, WaitingForALockEnds) {
  auto const folder = TemporaryFolder::make(std::filesystem::temp_directory_path(), "interrupt-test-");
  ASSERT_TRUE(folder);
  auto const file = folder->path() / "lock";
  auto const held = FileLock::acquire(file, "the first", Deadline::after(1s), {});
  ASSERT_TRUE(held);
  EXPECT_EXIT(
      {
        install_interrupt_handlers();
        auto const second =
            FileLock::acquire(file, "the second", Deadline::after(60s), [](auto const&) { std::raise(SIGINT); });
        std::_Exit(!second && second.error().outcome == Outcome::interrupted ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cuda_agent::util
