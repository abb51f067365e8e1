#include "device/cpu/cpu_backend.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string_view>
#include <thread>
#include <utility>

#include "device/cpu/cpu_arena.hpp"
#include "util/random.hpp"

namespace cuda_agent::device {
namespace {

/// More than two private caches hold, so that every arm finds its inputs equally far away.
constexpr std::size_t flush_bytes = std::size_t{8} << 20;

/// After so many bytes the noise repeats: drawing them all would take longer than the rest of a call.
constexpr std::size_t noise_bytes = std::size_t{64} << 10;

/// Plausible floats in [−2, 2) of either width: a result that was not written must not look like an untouched page.
void fill_with_noise(std::span<std::byte> memory, std::uint64_t seed) {
  util::SplitMix64 random(seed);
  std::size_t const drawn = std::min(memory.size(), noise_bytes);
  std::size_t at = 0;
  for (; at + 8 <= drawn; at += 8) {
    std::uint64_t const bits = (random() & 0xBFFF'FFFF'BFFF'FFFFULL);
    std::memcpy(memory.data() + at, &bits, 8);
  }
  std::memset(memory.data() + at, 0x3f, drawn - at);
  for (at = drawn; at < memory.size(); at += noise_bytes) {
    std::memcpy(memory.data() + at, memory.data(), std::min(noise_bytes, memory.size() - at));
  }
}

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      auto const colon = line.find(": ");
      return colon == std::string::npos ? line : line.substr(colon + 2);
    }
  }
  return "unknown";
}

class CpuBackend final : public Backend {
 public:
  CpuBackend() : m_flush(flush_bytes) {}

  std::string name() const override { return "cpu"; }
  std::string mode(CallMode /*mode*/) const override { return "answer"; }

  /// A worker is warmed up on the inputs of an earlier draw: they are to lie there whole. Large ones take too much
  /// twice.
  std::uint64_t second_place(std::uint64_t bytes) const override {
    constexpr std::uint64_t small = std::uint64_t{256} << 20;
    return bytes <= small ? bytes : Backend::second_place(bytes);
  }

  Result<std::unique_ptr<Arena>> allocate(std::uint64_t bytes) override {
    auto arena = CpuArena::lendable(bytes);
    if (!arena) return fail(arena.error());
    return std::unique_ptr<Arena>(std::move(*arena));
  }

  Result<std::unique_ptr<Arena>> allocate_private(std::uint64_t bytes) override {
    auto arena = CpuArena::unshared(bytes);
    if (!arena) return fail(arena.error());
    return std::unique_ptr<Arena>(std::move(*arena));
  }

  Result<void> copy(const Copy& copy) override {
    auto const from = memory_of(copy.from);
    auto const to = memory_of(copy.to);
    if (!from) return fail(from.error());
    if (!to) return fail(to.error());
    if (from->size() != to->size()) return fail(Outcome::internal_error, "a copy between spans of different size");
    if (!from->empty()) std::memcpy(to->data(), from->data(), from->size());
    return {};
  }

  Result<bool> equal(const Span& a, const Span& b) override {
    auto const left = memory_of(a);
    auto const right = memory_of(b);
    if (!left) return fail(left.error());
    if (!right) return fail(right.error());
    return left->size() == right->size() &&
           (left->empty() || std::memcmp(left->data(), right->data(), left->size()) == 0);
  }

  Result<CompareResult> compare(const Span& expected, const TensorLayout& expected_layout, const Span& got,
                                const TensorLayout& got_layout, const CompareOptions& options) override {
    auto const left = memory_of(expected);
    auto const right = memory_of(got);
    if (!left) return fail(left.error());
    if (!right) return fail(right.error());
    return device::compare(*left, expected_layout, *right, got_layout, options);
  }

  // The worker is stopped while its inputs arrive, so that nothing of it can begin early, and again as soon as it has
  // answered, so that nothing of it can finish late: what is in the output at the answer is the answer.
  Result<CallResult> call(Peer& peer, const TimedCall& call) override {
    CallResult result;
    if (auto sent = peer.send(call.request, call.deadline); !sent) return fail(sent.error());
    auto armed = peer.receive(call.deadline);
    if (!armed) return fail(armed.error());
    if (*armed != "A") {  // an error before it was armed
      result.reply = std::move(*armed);
      return result;
    }
    auto const output = memory_of(call.output);
    if (!output) return fail(output.error());

    peer.stop();
    for (Copy const& one : call.inputs) {
      if (auto copied = copy(one); !copied) return fail(copied.error());
    }
    fill_with_noise(*output, call.poison);
    flush();

    auto const start = util::Clock::now();
    auto went = peer.send("go", call.deadline);
    peer.resume();
    if (!went) return fail(went.error());
    auto answer = peer.receive(call.deadline);
    auto const end = util::Clock::now();
    peer.stop();
    if (!answer) return fail(answer.error());
    if (*answer != "D") return fail(Outcome::crash, "the worker sent something else where its answer was expected");
    if (auto kept = copy(Copy{call.output, call.kept}); !kept) return fail(kept.error());
    peer.resume();

    auto reply = peer.receive(call.deadline);
    if (!reply) return fail(reply.error());
    result.microseconds = std::chrono::duration<double, std::micro>(end - start).count();
    result.reply = std::move(*reply);
    return result;
  }

  std::map<std::string, std::string> facts() const override {
    return {{"device.kind", "cpu"},
            {"device.name", cpu_model()},
            {"device.cores", std::to_string(std::thread::hardware_concurrency())}};
  }

 private:
  void flush() {
    for (std::size_t at = 0; at < m_flush.size(); at += 64) ++m_flush[at];
  }

  std::vector<unsigned char> m_flush;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace cuda_agent::device
