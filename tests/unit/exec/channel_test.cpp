#include "exec/channel.hpp"

#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <tuple>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/child.hpp"
#include "shell.hpp"

namespace cuda_agent::exec {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr std::size_t c_limit = 4 << 20;

class Channels : public testing::Test {
 protected:
  void SetUp() override {
    auto made = Channel::make();
    ASSERT_TRUE(made);
    std::tie(m_ours, m_theirs) = std::move(*made);
  }

  // A packet as a peer would send it that need not keep to the rules.
  void packet(const std::string& bytes, const std::vector<int>& fds = {}) const {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(32 * sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (!fds.empty()) {
      header.msg_control = control.data();
      header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
      cmsghdr* const rights = CMSG_FIRSTHDR(&header);
      ASSERT_NE(rights, nullptr);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), fds.data(), fds.size() * sizeof(int));
    }
    ASSERT_EQ(::sendmsg(m_theirs.get(), &header, 0), static_cast<ssize_t>(bytes.size()));
  }

  // Expects that the next message is refused as a breach of the rules, and the channel closed.
  void expect_breach(const std::string& words) {
    auto const message = m_ours.receive(c_limit, soon());
    ASSERT_FALSE(message);
    EXPECT_EQ(message.error().outcome, Outcome::crash);
    EXPECT_NE(message.error().message.find(words), std::string::npos) << message.error().message;
    EXPECT_FALSE(m_ours.open());
  }

  std::unique_ptr<Child> peer(const std::string& mode, bool sandboxed = false) {
    Command command;
    command.argv = {EXEC_TEST_PEER, mode};
    command.inherit = {{m_theirs.get(), 3}};
    if (sandboxed) {
      command.sandbox = SandboxPlan{};
      command.sandbox->binds = {{EXEC_TEST_PEER, {}, false, false}};
    }
    auto child = spawn(command);
    EXPECT_TRUE(child) << child.error().message;
    m_theirs.reset();
    return child ? std::move(*child) : nullptr;
  }

  Channel m_ours;
  util::Fd m_theirs;
};

TEST_F(Channels, AMessageArrivesWithTheSendersPid) {
  packet(std::string(1, '\0') + "{}");
  auto const message = m_ours.receive(c_limit, soon());
  ASSERT_TRUE(message);
  EXPECT_EQ(message->text, "{}");
  EXPECT_EQ(message->sender, ::getpid());
  EXPECT_TRUE(message->fds.empty());
}

TEST_F(Channels, AnEmptyMessageIsAMessage) {
  Channel other(std::move(m_theirs));
  ASSERT_TRUE(m_ours.send("", {}, soon()));
  EXPECT_EQ(other.receive(0, soon())->text, "");
}

TEST_F(Channels, AMegabyteTravelsInPiecesBothWays) {
  std::string text(1 << 20, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 % 251);
  auto const child = peer("echo");
  ASSERT_TRUE(child);
  ASSERT_TRUE(m_ours.send(text, {}, soon(), *child));
  auto const message = m_ours.receive(c_limit, soon(), *child);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_TRUE(message->text == text);
}

TEST_F(Channels, MessagesAroundThePacketSizeArriveWhole) {
  Channel other(std::move(m_theirs));
  for (std::size_t const size : {32766, 32767, 32768, 65534, 65535}) {
    ASSERT_TRUE(m_ours.send(std::string(size, 'x'), {}, soon()));
    EXPECT_EQ(other.receive(c_limit, soon())->text.size(), size);
  }
}

TEST_F(Channels, DescriptorsArriveOnceAndAreClosedOnExec) {
  Channel other(std::move(m_theirs));
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ASSERT_TRUE(m_ours.send(std::string(100000, 'x'), {ends[0], ends[1]}, soon()));
  auto const message = other.receive(c_limit, soon());
  ASSERT_TRUE(message) << message.error().message;
  ASSERT_EQ(message->fds.size(), 2U);
  for (auto const& fd : message->fds) EXPECT_EQ(::fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
  ASSERT_EQ(::write(message->fds[1].get(), "x", 1), 1);
  char got = 0;
  EXPECT_EQ(::read(ends[0], &got, 1), 1);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Channels, MoreThanSixteenDescriptorsAreRefusedAndClosed) {
  EXPECT_FALSE(m_ours.send("{}", std::vector<int>(17, 0), soon()));
  EXPECT_TRUE(m_ours.open()) << "nothing was sent";

  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  packet(std::string(1, '\0') + "{}", std::vector<int>(17, ends[1]));
  ::close(ends[1]);
  expect_breach("more than 16 descriptors");
  char got = 0;
  EXPECT_EQ(::read(ends[0], &got, 1), 0) << "a received descriptor is still open";
  ::close(ends[0]);
}

TEST_F(Channels, FarTooManyDescriptorsAreClosedToo) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  packet(std::string(1, '\0') + "{}", std::vector<int>(32, ends[1]));
  ::close(ends[1]);
  expect_breach("too many descriptors");
  char got = 0;
  EXPECT_EQ(::read(ends[0], &got, 1), 0) << "a received descriptor is still open";
  ::close(ends[0]);
}

TEST_F(Channels, BrokenFramingClosesTheChannel) {
  packet("{\"no\": \"flag\"}");
  expect_breach("begins with byte 123");
}

TEST_F(Channels, APacketThatIsTooLongClosesTheChannel) {
  packet(std::string(33000, '\0'));
  expect_breach("more than 32768 bytes");
}

TEST_F(Channels, AMessagePastTheLimitClosesTheChannel) {
  for (int i = 0; i < 4; ++i) packet("\1" + std::string(1000, 'x'));
  auto const message = m_ours.receive(3500, soon());
  ASSERT_FALSE(message);
  EXPECT_NE(message.error().message.find("more than 3500 bytes"), std::string::npos) << message.error().message;
  EXPECT_FALSE(m_ours.open());
}

TEST_F(Channels, EmptyPacketsWithoutEndAreRefused) {
  packet("\1");
  expect_breach("empty packet");
}

TEST_F(Channels, DescriptorsInTheMiddleAreRefused) {
  packet("\1{");
  packet(std::string(1, '\0') + "}", {0});
  expect_breach("middle of a message");
}

TEST_F(Channels, WaitingEndsAtTheDeadlineAndTheRestMayStillCome) {
  packet("\1hello ");
  auto const begin = std::chrono::steady_clock::now();
  auto const late = m_ours.receive(c_limit, util::Deadline::after(50ms));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().outcome, Outcome::timeout);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 50ms);
  packet(std::string(1, '\0') + "world");
  auto const message = m_ours.receive(c_limit, soon());
  ASSERT_TRUE(message);
  EXPECT_EQ(message->text, "hello world");
}

TEST_F(Channels, SendingToAPeerThatDoesNotReadEndsAtTheDeadline) {
  auto const sent = m_ours.send(std::string(8 << 20, 'x'), {}, util::Deadline::after(50ms));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().outcome, Outcome::timeout);
  EXPECT_FALSE(m_ours.open()) << "half a message was sent";
}

TEST_F(Channels, APeerThatIsGoneIsACrash) {
  m_theirs.reset();
  auto const message = m_ours.receive(c_limit, soon());
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().outcome, Outcome::crash);
  EXPECT_EQ(m_ours.send("{}", {}, soon()).error().outcome, Outcome::crash);
  EXPECT_EQ(m_ours.receive(c_limit, soon()).error().outcome, Outcome::crash);
}

TEST_F(Channels, SendingToAPeerThatIsGoneIsACrashAndNoSignal) {
  m_theirs.reset();
  EXPECT_EQ(m_ours.send("{}", {}, soon()).error().outcome, Outcome::crash);
}

TEST_F(Channels, AChildThatPrintsMuchBeforeItAnswersDoesNotStandStill) {
  auto const child = peer("flood");
  ASSERT_TRUE(child);
  auto const message = m_ours.receive(c_limit, soon(), *child);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(message->text, "done");
  EXPECT_EQ(message->sender, child->pid());
}

TEST_F(Channels, AChildThatPrintsMuchBeforeItListensDoesNotStandStill) {
  auto const child = peer("flood-then-listen");
  ASSERT_TRUE(child);
  ASSERT_TRUE(m_ours.send(std::string(1 << 20, 'x'), {}, soon(), *child));
  EXPECT_EQ(m_ours.receive(c_limit, soon(), *child)->text, "1048576");
}

TEST_F(Channels, LastWordsAreHeardAndThenHowItEnded) {
  auto const child = peer("abort");
  ASSERT_TRUE(child);
  auto const message = m_ours.receive(c_limit, soon(), *child);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(message->text, "last words");
  auto const end = m_ours.receive(c_limit, soon(), *child);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().outcome, Outcome::crash);
  EXPECT_NE(end.error().message.find("SIGABRT"), std::string::npos) << end.error().message;
}

TEST_F(Channels, ASandboxedSendersPidIsTheOneThatWeSee) {
  if (!probe_sandbox().bubblewrap) GTEST_SKIP() << probe_sandbox().reason;
  auto const child = peer("echo", true);
  ASSERT_TRUE(child);
  ASSERT_TRUE(m_ours.send("hello", {}, soon(), *child));
  auto const message = m_ours.receive(c_limit, soon(), *child);
  ASSERT_TRUE(message) << message.error().message << child->output().text();
  EXPECT_EQ(message->text, "hello");
  EXPECT_NE(message->sender, child->pid()) << "that is bubblewrap";
  EXPECT_GT(message->sender, 10) << "a number inside its pid namespace";
}

TEST_F(Channels, ASandboxedChildsEndIsTranslated) {
  if (!probe_sandbox().bubblewrap) GTEST_SKIP() << probe_sandbox().reason;
  auto const child = peer("abort", true);
  ASSERT_TRUE(child);
  ASSERT_TRUE(m_ours.receive(c_limit, soon(), *child));
  auto const end = m_ours.receive(c_limit, soon(), *child);
  ASSERT_FALSE(end);
  EXPECT_NE(end.error().message.find("SIGABRT"), std::string::npos) << end.error().message;
}

}  // namespace
}  // namespace cuda_agent::exec
