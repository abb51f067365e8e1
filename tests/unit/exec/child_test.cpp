#include "exec/child.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/descendants.hpp"
#include "shell.hpp"
#include "util/fd.hpp"
#include "util/files.hpp"
#include "util/interrupt.hpp"
#include "util/text.hpp"

namespace cuda_agent::exec {
namespace {

namespace fs = std::filesystem;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

std::string output_of(const Command& command) {
  auto const done = run(command, soon());
  return done ? done->output : done.error().message;
}

// What a child says first, once it has said something.
std::string first_words(Child& child) {
  util::Deadline const deadline = soon();
  while (child.output().head.find('\n') == std::string::npos && !deadline.expired() && child.output_fd() >= 0) {
    pollfd wait{child.output_fd(), POLLIN, 0};
    ::poll(&wait, 1, deadline.remaining_ms());
    child.drain();
  }
  return child.output().head;
}

TEST(Run, GivesOutputAndExitCode) {
  auto const done = run(shell("echo out; echo err >&2; exit 3"), soon());
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->output, "out\nerr\n");
  EXPECT_EQ(done->status.code, 3);
  EXPECT_EQ(done->status.signal, 0);
  EXPECT_GT(done->seconds, 0);
}

TEST(Run, GivesTheSignal) {
  auto const done = run(shell("kill -SEGV $$"), soon());
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status.signal, SIGSEGV);
}

TEST(Run, TheEnvironmentIsExactlyTheNamedOne) {
  Command command;
  command.argv = {"/usr/bin/env"};
  command.env = {{"A", "1"}, {"B", "two words"}};
  EXPECT_EQ(output_of(command), "A=1\nB=two words\n");
}

TEST(Run, TheFolderIsTheNamedOneElseTheRoot) {
  Command command = shell("pwd -P");
  EXPECT_EQ(output_of(command), "/\n");
  command.cwd = "/usr/bin";
  EXPECT_EQ(output_of(command), "/usr/bin\n");
}

TEST(Run, ArgumentsReachTheCommandUnchanged) {
  Command command;
  command.argv = {"/usr/bin/printf", "%s|", "a b", "$HOME", "*", "", "'\"\\"};
  EXPECT_EQ(output_of(command), "a b|$HOME|*||'\"\\|");
}

TEST(Run, StandardInputIsEmpty) { EXPECT_EQ(output_of(shell("cat; echo end")), "end\n"); }

TEST(Run, AHundredMegabytesOfOutputNeitherBlockNorStay) {
  Command command = shell("echo begin; head -c 100000000 /dev/zero; echo end");
  command.capture_head = 1000;
  command.capture_tail = 500;
  auto child = spawn(command);
  ASSERT_TRUE(child);
  auto const status = (*child)->wait(soon());
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->ok());
  Captured const& captured = (*child)->output();
  EXPECT_EQ(captured.head.size(), 1000U);
  EXPECT_EQ(captured.tail.size(), 500U);
  EXPECT_EQ(captured.dropped, 100000000U + 6 + 4 - 1500);
  EXPECT_TRUE(captured.head.starts_with("begin\n"));
  EXPECT_TRUE(captured.tail.ends_with("end\n"));
  EXPECT_NE(captured.text().find("[... 99998510 bytes left out ...]"), std::string::npos);
}

TEST(Run, OutputThatFitsIsWhole) {
  Command command = shell("seq 1 2000");
  command.capture_head = 100;
  command.capture_tail = 10000;
  auto const lines = util::split_lines(output_of(command));
  ASSERT_EQ(lines.size(), 2000U);
  EXPECT_EQ(lines[20], "21");
  EXPECT_EQ(lines.back(), "2000");
}

TEST(Run, TakesTooLongIsKilledAndShowsWhatItSaid) {
  auto const begin = std::chrono::steady_clock::now();
  std::string const span = own_sleep();
  auto const done = run(shell("echo working; sleep " + span), util::Deadline::after(200ms));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().outcome, Outcome::timeout);
  EXPECT_EQ(done.error().detail, "working\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  EXPECT_FALSE(somebody_runs(span));
}

TEST(Run, AGrandchildThatKeepsThePipeOpenDoesNotHoldTheCaller) {
  std::string const span = own_sleep();
  auto const done = run(shell("sleep " + span + " & echo done"), soon());
  ASSERT_TRUE(done);
  EXPECT_EQ(done->output, "done\n");
  EXPECT_FALSE(somebody_runs(span)) << "it was left behind";
}

TEST(Run, DaemonsInSessionsOfTheirOwnDoNotEscape) {
  std::string const span = own_sleep();
  std::string const daemon = "setsid sh -c 'sleep " + span + " & setsid sleep " + span + " &' &";
  auto const done = run(shell(daemon + " setsid sh -c 'echo ready'"), soon());
  ASSERT_TRUE(done);
  EXPECT_EQ(done->output, "ready\n");
  EXPECT_FALSE(somebody_runs(span));
}

TEST(Run, LeavesNoZombies) {
  ASSERT_TRUE(run(shell("setsid sh -c 'true & true & true &' & true & exit 0"), soon()));
  errno = 0;
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(Run, TheEndOfOneChildLeavesAnotherAndItsOwnAlone) {
  auto other = spawn(shell("sleep " + own_sleep() + " & echo ready; wait"));
  ASSERT_TRUE(other);
  ASSERT_EQ(first_words(**other), "ready\n");
  ASSERT_TRUE(run(shell("setsid sleep 86400 & exit 0"), soon()));
  EXPECT_FALSE((*other)->poll().has_value());
  EXPECT_TRUE(somebody_runs(own_sleep()));
  (*other)->kill();
  EXPECT_FALSE(somebody_runs(own_sleep()));
}

TEST(Run, ManyAtOnceFromManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 10; ++i) {
        std::string const word = std::to_string(t) + "." + std::to_string(i);
        EXPECT_EQ(output_of(shell("setsid true & echo " + word)), word + "\n");
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Spawn, NamesAnExecutableThatIsMissing) {
  Command command;
  command.argv = {"/no/such/compiler"};
  auto const child = spawn(command);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().outcome, Outcome::environment_error);
  EXPECT_NE(child.error().message.find("/no/such/compiler"), std::string::npos);
  EXPECT_NE(child.error().message.find("No such file"), std::string::npos) << child.error().message;
}

TEST(Spawn, NamesAFolderThatIsMissing) {
  Command command = shell("true");
  command.cwd = "/no/such/folder";
  auto const child = spawn(command);
  ASSERT_FALSE(child);
  EXPECT_NE(child.error().message.find("/no/such/folder"), std::string::npos) << child.error().message;
}

TEST(Spawn, RefusesARelativeNameAndAStandardDescriptor) {
  Command relative;
  relative.argv = {"sh"};
  EXPECT_FALSE(spawn(relative));
  EXPECT_FALSE(spawn(Command{}));
  Command standard = shell("true");
  standard.inherit = {{0, 2}};
  EXPECT_FALSE(spawn(standard));
}

TEST(Spawn, OpenDescriptorsAreNotInherited) {
  util::Fd const leak(::open("/dev/null", O_RDONLY));  // on purpose without O_CLOEXEC
  util::Fd const high(::fcntl(leak.get(), F_DUPFD, 500));
  ASSERT_TRUE(high);
  Command command;
  command.argv = {"/bin/ls", "/proc/self/fd"};
  EXPECT_EQ(output_of(command), "0\n1\n2\n3\n") << "3 is the folder that ls reads";
}

TEST(Spawn, NamedDescriptorsArriveAtTheirNumbersInWhateverOrder) {
  std::array<int, 2> first{};
  std::array<int, 2> second{};
  ASSERT_EQ(::pipe2(first.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(second.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::write(first[1], "first\n", 6), 6);
  ASSERT_EQ(::write(second[1], "second\n", 7), 7);
  ::close(first[1]);
  ::close(second[1]);
  // Each to the other's number.
  Command swapped = shell("cat <&" + std::to_string(second[0]) + "; cat <&" + std::to_string(first[0]));
  swapped.inherit = {{first[0], second[0]}, {second[0], first[0]}};
  EXPECT_EQ(output_of(swapped), "first\nsecond\n");
  ::close(first[0]);
  ::close(second[0]);
}

TEST(Spawn, ADescriptorMayKeepItsNumber) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  Command command = shell("echo hello >&" + std::to_string(ends[1]));
  command.inherit = {{ends[1], ends[1]}};
  EXPECT_EQ(output_of(command), "");
  std::array<char, 6> text{};
  EXPECT_EQ(::read(ends[0], text.data(), text.size()), 6);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Spawn, WorksWithTheStandardDescriptorsClosed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::close(0);
        ::close(1);
        std::_Exit(output_of(shell("cat; echo hello")) == "hello\n" ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Spawn, SignalsAreAsTheyAreByDefault) {
  struct sigaction before {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGPIPE, &ignore, &before), 0);
  sigset_t blocked;
  sigset_t old_mask;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &old_mask);
  Command command;
  command.argv = {"/bin/grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"};
  EXPECT_EQ(output_of(command), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
  ::pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
  ::sigaction(SIGPIPE, &before, nullptr);
}

TEST(Spawn, TheChildCannotGainPrivilegesAndLeadsASession) {
  EXPECT_EQ(output_of(shell("grep NoNewPrivs /proc/self/status")), "NoNewPrivs:\t1\n");
  EXPECT_EQ(output_of(shell("test $(cut -d' ' -f6 /proc/$$/stat) = $$ && echo leads")), "leads\n");
}

TEST(Spawn, ACommandCanBeStartedWithoutCapabilities) {
  Command command = shell("grep -E 'Cap(Prm|Eff)' /proc/self/status");
  command.no_capabilities = true;
  EXPECT_EQ(output_of(command), "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n");
}

TEST(Limits, AreInForce) {
  Command command = shell("ulimit -c; ulimit -n; ulimit -v; ulimit -f; ulimit -t");
  command.limits.open_files = 64;
  command.limits.address_space = std::uint64_t{1} << 30U;
  command.limits.file_size = std::uint64_t{1} << 20U;
  command.limits.cpu_seconds = 7;
  EXPECT_EQ(output_of(command), "0\n64\n1048576\n2048\n7\n");
}

TEST(Limits, AnEndlessLoopEndsByProcessorTime) {
  Command command = shell("while :; do :; done");
  command.limits.cpu_seconds = 1;
  auto const done = run(command, soon());
  ASSERT_TRUE(done);
  EXPECT_TRUE(done->status.signal == SIGXCPU || done->status.signal == SIGKILL) << done->status.describe();
}

TEST(Limits, AFileCannotGrowPastItsLimit) {
  auto const folder = util::TemporaryFolder::make(fs::temp_directory_path(), "limit-test-");
  ASSERT_TRUE(folder);
  Command command = shell("exec head -c 2000000 /dev/zero > big");
  command.cwd = folder->path();
  command.limits.file_size = 1000000;
  auto const done = run(command, soon());
  ASSERT_TRUE(done);
  EXPECT_EQ(done->status.signal, SIGXFSZ);
  EXPECT_EQ(fs::file_size(folder->path() / "big"), 1000000U);
}

TEST(Child, WaitGivesUpAtItsDeadlineAndTheChildGoesOn) {
  auto child = spawn(shell("sleep " + own_sleep()));
  ASSERT_TRUE(child);
  auto const status = (*child)->wait(util::Deadline::after(50ms));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().outcome, Outcome::timeout);
  EXPECT_FALSE((*child)->poll().has_value());
  EXPECT_TRUE(somebody_runs(own_sleep()));
}

TEST(Child, KillTakesEverythingUnderItAndMayBeRepeated) {
  std::string const span = own_sleep();
  auto child =
      spawn(shell("setsid sh -c 'sleep " + span + " & sleep " + span + "' & sleep " + span + " & echo up; wait"));
  ASSERT_TRUE(child);
  ASSERT_EQ(first_words(**child), "up\n");
  (*child)->kill();
  EXPECT_FALSE(somebody_runs(span));
  (*child)->kill();
  auto const status = (*child)->poll();
  ASSERT_TRUE(status);
  EXPECT_EQ(status->signal, SIGKILL);
}

TEST(Child, AStoppedChildCanBeKilled) {
  auto child = spawn(shell("echo up; kill -STOP $$; sleep " + own_sleep()));
  ASSERT_TRUE(child);
  ASSERT_EQ(first_words(**child), "up\n");
  (*child)->kill();
  EXPECT_TRUE((*child)->poll().has_value());
}

TEST(Child, DestructionEndsIt) {
  { ASSERT_TRUE(spawn(shell("sleep " + own_sleep()))); }
  EXPECT_FALSE(somebody_runs(own_sleep()));
}

TEST(Child, DrainReturnsAlthoughTheChildNeverStopsPrinting) {
  auto child = spawn(shell("exec yes"));
  ASSERT_TRUE(child);
  util::Deadline const deadline = soon();
  while ((*child)->output().dropped < 10'000'000 && !deadline.expired()) {
    pollfd wait{(*child)->output_fd(), POLLIN, 0};
    ::poll(&wait, 1, deadline.remaining_ms());
    (*child)->drain();
  }
  EXPECT_FALSE(deadline.expired());
  EXPECT_EQ((*child)->output().head.size(), 64U * 1024);
  EXPECT_EQ((*child)->output().tail.size(), 64U * 1024);
}

TEST(Child, DiesWithTheProcessThatStartedIt) {
  ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  pid_t const supervisor = ::fork();
  if (supervisor == 0) {
    auto const child = spawn(shell("sleep " + own_sleep()));
    pid_t const pid = child ? (*child)->pid() : 0;
    [[maybe_unused]] ssize_t const written = ::write(ends[1], &pid, sizeof pid);
    ::kill(::getpid(), SIGKILL);
  }
  pid_t orphan = 0;
  ASSERT_EQ(::read(ends[0], &orphan, sizeof orphan), static_cast<ssize_t>(sizeof orphan));
  ASSERT_GT(orphan, 0);
  ASSERT_EQ(::waitpid(supervisor, nullptr, 0), supervisor);
  EXPECT_TRUE(wait_for_end(orphan, soon())) << "it lives on";
  ::kill(orphan, SIGTERM);
  int status = 0;
  ASSERT_EQ(::waitpid(orphan, &status, 0), orphan);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(ChildDeathTest, AnInterruptEndsTheWaitAndTheChild) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        util::install_interrupt_handlers();
        std::string const span = own_sleep();
        auto const done = run(shell("kill -INT $PPID; sleep " + span), soon());
        bool const good = !done && done.error().outcome == Outcome::interrupted && !somebody_runs(span);
        std::_Exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cuda_agent::exec
