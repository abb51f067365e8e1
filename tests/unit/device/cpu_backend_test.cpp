#include "device/cpu/cpu_backend.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/cpu/cpu_arena.hpp"

namespace cuda_agent::device {
namespace {

/// A worker that answers by a script and notes what it was told, in order.
class ScriptedPeer final : public Peer {
 public:
  Result<void> send(const std::string& text, util::Deadline) override {
    log.push_back("send " + text);
    return {};
  }
  Result<std::string> receive(util::Deadline) override {
    if (answers.empty()) return fail(Outcome::timeout, "no answer");
    std::string text = answers.front();
    answers.pop_front();
    log.push_back("got " + text);
    if (text == "D" && on_answer) on_answer();
    return text;
  }
  void stop() override { log.emplace_back("stop"); }
  void resume() override { log.emplace_back("resume"); }

  std::deque<std::string> answers;
  std::vector<std::string> log;
  std::function<void()> on_answer;
};

util::Deadline soon() { return util::Deadline::after(std::chrono::seconds(5)); }

class CpuBackend : public ::testing::Test {
 protected:
  void SetUp() override {
    m_backend = make_cpu_backend();
    for (auto* arena : {&m_drawn, &m_slot, &m_output, &m_kept}) *arena = *m_backend->allocate(4096);
    std::ranges::fill(bytes(m_drawn), std::byte{7});
    m_call.request = "call";
    m_call.inputs = {{{m_drawn.get(), 0, 4096}, {m_slot.get(), 0, 4096}}};
    m_call.output = {m_output.get(), 0, 4096};
    m_call.kept = {m_kept.get(), 0, 4096};
  }
  static std::span<std::byte> bytes(const std::unique_ptr<Arena>& arena) {
    return *memory_of({arena.get(), 0, arena->size()});
  }

  std::unique_ptr<Backend> m_backend;
  std::unique_ptr<Arena> m_drawn, m_slot, m_output, m_kept;
  TimedCall m_call{.request = {}, .inputs = {}, .output = {}, .kept = {}, .poison = 1, .deadline = soon()};
};

TEST_F(CpuBackend, InputsArriveWhileTheWorkerIsHeldAndTheClockRunsFromGoToAnswer) {
  ScriptedPeer peer;
  peer.answers = {"A", "D", "{}"};
  auto const result = m_backend->call(peer, m_call);
  ASSERT_TRUE(result);
  EXPECT_EQ(peer.log, (std::vector<std::string>{"send call", "got A", "stop", "send go", "resume", "got D", "stop",
                                                "resume", "got {}"}));
  EXPECT_EQ(bytes(m_slot)[100], std::byte{7});
  EXPECT_GT(result->microseconds, 0);
}

TEST_F(CpuBackend, WhatIsWrittenAfterTheAnswerDoesNotCount) {
  ScriptedPeer peer;
  peer.answers = {"A", "D", "{}"};
  peer.on_answer = [&] { std::ranges::fill(bytes(m_output), std::byte{1}); };
  ASSERT_TRUE(m_backend->call(peer, m_call));
  std::ranges::fill(bytes(m_output), std::byte{2});
  EXPECT_EQ(bytes(m_kept)[0], std::byte{1});
  EXPECT_EQ(bytes(m_kept)[4095], std::byte{1});
}

TEST_F(CpuBackend, UnwrittenRoomHoldsOtherNoiseOnEveryCall) {
  std::vector<std::byte> first;
  for (std::uint64_t seed : {1, 2}) {
    ScriptedPeer peer;
    peer.answers = {"A", "D", "{}"};
    m_call.poison = seed;
    ASSERT_TRUE(m_backend->call(peer, m_call));
    auto const now = bytes(m_kept);
    if (!first.empty()) {
      EXPECT_FALSE(std::equal(first.begin(), first.end(), now.begin()));
    }
    first.assign(now.begin(), now.end());
  }
}

TEST_F(CpuBackend, AnErrorBeforeItWasArmedIsPassedOn) {
  ScriptedPeer peer;
  peer.answers = {R"({"ok":false})"};
  auto const result = m_backend->call(peer, m_call);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->reply, R"({"ok":false})");
}

TEST_F(CpuBackend, SomethingElseInPlaceOfTheAnswerIsACrash) {
  ScriptedPeer peer;
  peer.answers = {"A", "{\"ok\":true}"};
  auto const result = m_backend->call(peer, m_call);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().outcome, Outcome::crash);
}

TEST(CpuArena, AWorkerCanNeitherShrinkNorGrowWhatItWasLent) {
  auto const arena = CpuArena::lendable(8192);
  ASSERT_TRUE(arena);
  EXPECT_NE(::ftruncate((*arena)->descriptor(), 0), 0);
  EXPECT_NE(::ftruncate((*arena)->descriptor(), 1 << 20), 0);
}

TEST(CpuArena, SpansOutsideAreErrors) {
  auto const arena = *CpuArena::unshared(100);
  EXPECT_TRUE(memory_of({arena.get(), 0, 100}));
  EXPECT_FALSE(memory_of({arena.get(), 1, 100}));
  EXPECT_FALSE(memory_of({arena.get(), ~std::uint64_t{0}, 2}));
}

TEST(CpuArena, MoreThanTheMachineHasIsRefusedWithTheNumberOfBytes) {
  auto const arena = CpuArena::lendable(std::uint64_t{1} << 60);
  ASSERT_FALSE(arena);
  EXPECT_EQ(arena.error().outcome, Outcome::environment_error);
  EXPECT_NE(arena.error().message.find("1152921504606846976"), std::string::npos);
}

}  // namespace
}  // namespace cuda_agent::device
