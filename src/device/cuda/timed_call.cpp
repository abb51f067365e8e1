#include "device/cuda/timed_call.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include <spdlog/fmt/fmt.h>

#include "device/cuda/cuda_arena.hpp"
#include "device/cuda/driver.hpp"
#include "device/cuda/kernels.hpp"
#include "util/random.hpp"
#include "worker/control_page.hpp"

namespace cuda_agent::device {
namespace {

using util::Clock;
using util::Deadline;

constexpr std::uint64_t chunk_bytes = std::uint64_t{64} << 10;
constexpr int most_chunks = 4;
constexpr std::uint64_t sample_bytes = 4096;
constexpr int samples = 8;
constexpr std::uint64_t alignment = 256;
/// The device answers within this; a gate that does not beat so long is not there any more.
constexpr std::chrono::seconds beat_patience{2};
constexpr int beats_to_resume = 3;
/// A gate that is running beats every microsecond or two: after a longer gap something else has the device.
constexpr std::chrono::microseconds longest_gap{50};
/// So long the clock is watched without a pause; what takes longer is measured to a few microseconds.
constexpr std::chrono::milliseconds undisturbed{50};

// The pinned memory: held-back chunks, then two sets of samples.
constexpr std::uint64_t samples_at = most_chunks * chunk_bytes;
constexpr std::uint64_t kept_samples_at = samples_at + samples * sample_bytes;
static_assert(kept_samples_at + samples * sample_bytes <= Gpu::pinned_bytes);

constexpr const char* preparing = "preparing a timed call";
constexpr const char* storing = "keeping a result";

double microseconds(Clock::duration span) { return std::chrono::duration<double, std::micro>(span).count(); }

/// A counter of the shared page. Whoever else maps the page may write to it at any time.
class Counter {
 public:
  explicit Counter(std::uint64_t& place) : m_place(place) {}
  std::uint64_t get() const { return m_place.load(std::memory_order_acquire); }
  void set(std::uint64_t value) const { m_place.store(value, std::memory_order_release); }

 private:
  std::atomic_ref<std::uint64_t> m_place;
};

struct Chunk {
  std::byte* place = nullptr;
  std::uint64_t bytes = 0;
};

class GpuCall {
 public:
  GpuCall(const Gpu& gpu, Peer& peer, const TimedCall& call, worker::ControlPage& page)
      : m_gpu(gpu),
        m_peer(peer),
        m_call(call),
        m_go(page.go),
        m_resident(page.resident),
        m_beat(page.beat),
        m_done1(page.done1),
        m_done2(page.done2),
        m_ticket(util::random_u64() | 1U),
        m_nonce(util::random_u64() | 1U),
        m_random(util::random_u64()) {}

  Result<CallResult> run() {
    if (auto sent = m_peer.send(m_call.request, m_call.deadline); !sent) return fail(sent.error());
    auto ready = m_peer.receive(m_call.deadline);
    if (!ready) return fail(ready.error());
    if (*ready != "R") {  // an error before it was ready
      m_result.reply = std::move(*ready);
      return std::move(m_result);
    }
    for (auto const& counter : {m_go, m_resident, m_done1, m_done2}) counter.set(0);
    auto done = m_call.mode == CallMode::gated ? gated() : open();
    if (!done) return fail(done.error());
    if (auto answered = take_reply(); !answered) return fail(answered.error());
    return std::move(m_result);
  }

 private:
  // --- before ------------------------------------------------------------------------------------------------------

  Result<void> copy_inputs() {
    for (Copy const& one : m_call.inputs) {
      auto const from = address_of(one.from);
      auto const to = address_of(one.to);
      if (!from) return fail(from.error());
      if (!to) return fail(to.error());
      if (one.from.bytes == 0) continue;
      auto const status = cudaMemcpyAsync(*to, *from, one.from.bytes, cudaMemcpyDeviceToDevice, m_gpu.stream());
      if (auto copied = checked(status, preparing); !copied) return copied;
    }
    return {};
  }

  /// A few pieces of the inputs stay behind in pinned memory; noise lies in their places until the very end. A piece is
  /// never smaller than a chunk, whatever lies beside a small input: to copy less than that the driver takes the
  /// multiprocessors' queue, and the gate would be put aside for it (measured: 16 KiB, docs/measured.md).
  Result<void> hold_back() {
    std::vector<const Copy*> filled;
    for (Copy const& one : m_call.inputs) {
      if (one.from.bytes > 0) filled.push_back(&one);
    }
    for (int i = 0; i < most_chunks && !filled.empty(); ++i) {
      Copy const& one = *filled[m_random.below(filled.size())];
      std::uint64_t const bytes = std::min(chunk_bytes, one.to.arena->size());
      std::uint64_t const last = one.to.arena->size() - bytes;
      std::uint64_t const at = (one.to.at + m_random.below(one.to.bytes)) / alignment * alignment;
      Chunk const chunk{*address_of({one.to.arena, std::min(at, last), bytes}), bytes};
      auto const status = cudaMemcpyAsync(pinned_chunk(m_chunks.size()), chunk.place, chunk.bytes,
                                          cudaMemcpyDeviceToHost, m_gpu.stream());
      if (auto copied = checked(status, preparing); !copied) return copied;
      m_chunks.push_back(chunk);
    }
    for (Chunk const& chunk : m_chunks) {
      auto const status = kernels::fill_with_noise(chunk.place, chunk.bytes, m_random(), m_gpu.stream());
      if (auto filled_in = checked(status, preparing); !filled_in) return filled_in;
    }
    return {};
  }

  std::byte* pinned_chunk(std::size_t i) const { return m_gpu.pinned() + i * chunk_bytes; }

  /// By the copy engine, which passes a closed gate.
  Result<void> hand_out_chunks() {
    for (std::size_t i = 0; i < m_chunks.size(); ++i) {
      auto const status = cudaMemcpyAsync(m_chunks[i].place, pinned_chunk(i), m_chunks[i].bytes, cudaMemcpyHostToDevice,
                                          m_gpu.stream());
      if (auto copied = checked(status, preparing); !copied) return copied;
    }
    m_chunks.clear();
    return m_gpu.synchronize(preparing);
  }

  Result<void> poison_and_flush() {
    auto const output = address_of(m_call.output);
    if (!output) return fail(output.error());
    if (m_call.output.bytes == 0) return m_gpu.flush_cache(m_random());
    auto const status = kernels::fill_with_noise(*output, m_call.output.bytes, m_call.poison, m_gpu.stream());
    if (auto filled = checked(status, preparing); !filled) return filled;
    return m_gpu.flush_cache(m_random());
  }

  // --- open: from before the inputs are written --------------------------------------------------------------------

  Result<void> open() {
    if (auto done = poison_and_flush(); !done) return done;
    if (auto done = m_gpu.synchronize(preparing); !done) return done;
    m_start = Clock::now();
    if (auto done = copy_inputs(); !done) return done;
    if (auto done = m_gpu.synchronize(preparing); !done) return done;
    auto const sent = Clock::now();
    if (auto done = m_peer.send(fmt::format("open {:016x}", m_ticket), m_call.deadline); !done) return done;
    auto mark = m_peer.receive(m_call.deadline);
    if (!mark) return fail(mark.error());
    m_result.enqueued = microseconds(Clock::now() - sent);
    if (*mark == "E") return {};
    if (*mark != "F") return broken();
    if (auto done = m_peer.send(nonce_text(), m_call.deadline); !done) return done;
    mark = m_peer.receive(m_call.deadline);
    if (!mark) return fail(mark.error());
    if (*mark != "A") return broken();
    return watch();
  }

  // --- gated: from go ----------------------------------------------------------------------------------------------

  Result<void> gated() {
    if (auto done = copy_inputs(); !done) return done;
    if (auto done = hold_back(); !done) return done;
    if (auto done = poison_and_flush(); !done) return done;
    if (auto done = m_gpu.synchronize(preparing); !done) return done;
    auto const arming = Deadline::after(std::chrono::duration<double>(m_call.arming_seconds)).earlier(m_call.deadline);
    auto const sent = Clock::now();
    if (auto done = m_peer.send(fmt::format("closed {:016x}", m_ticket), m_call.deadline); !done) return done;
    auto const returned = mark_behind_the_gate(arming);
    if (!returned) return fail(returned.error());
    m_result.enqueued = microseconds(Clock::now() - sent);
    if (*returned == "E") return go();
    if (*returned != "F") return broken();
    if (auto done = m_peer.send(nonce_text(), m_call.deadline); !done) return done;
    auto const armed = mark_behind_the_gate(arming);
    if (!armed) return fail(armed.error());
    if (*armed != "A") return broken();
    if (m_result.armed) {
      if (auto done = wait_for_gate(arming); !done) return done;
      if (auto done = go(); !done) return done;
    }
    if (auto done = watch(); !done) return done;
    return m_result.armed ? take_samples() : Result<void>();
  }

  /// The worker's next mark. When it does not come in time, the model waits for work that the gate holds back: the gate
  /// is opened, and the call's time will not count.
  Result<std::string> mark_behind_the_gate(Deadline arming) {
    if (m_result.armed) {
      auto mark = m_peer.receive(arming);
      if (mark || mark.error().outcome != Outcome::timeout || m_call.deadline.expired()) return mark;
      (void)not_held(
          fmt::format("it was not enqueued within {:.0f} ms behind a closed gate", 1e3 * m_call.arming_seconds));
      if (auto done = go(); !done) return fail(done.error());
    }
    return m_peer.receive(m_call.deadline);
  }

  /// Until the gate fills the device and beats again: another context used the device just now. Only then are the last
  /// pieces of the inputs handed out, which does not disturb the gate: what somebody could do with them before go is
  /// what fits into the time of a copy.
  Result<void> wait_for_gate(Deadline arming) {
    while (m_resident.get() != m_ticket) {
      if (arming.expired()) return not_held("the gate never filled the device");
    }
    if (!beats(beats_to_resume, beat_patience))
      return not_held("the gate did not run again after the inputs were written");
    if (auto done = hand_out_chunks(); !done) return done;
    auto const handed_out = Clock::now();
    if (beats(1, longest_gap)) return {};
    (void)beats(1, beat_patience);
    return not_held(fmt::format("the gate stood still for {:.2f} ms just before it was opened",
                                microseconds(Clock::now() - handed_out) / 1e3));
  }

  /// Whether the gate's counter moves so many times within `patience`.
  bool beats(int wanted, Clock::duration patience) const {
    auto const end = Clock::now() + patience;
    std::uint64_t seen = m_beat.get();
    for (int counted = 0; counted < wanted;) {
      std::uint64_t const now = m_beat.get();
      counted += now != seen ? 1 : 0;
      seen = now;
      if (Clock::now() > end) return false;
    }
    return true;
  }

  Result<void> not_held(std::string why) {
    m_result.armed = false;
    m_result.refused = std::move(why);
    return {};
  }

  /// Opens the gate and starts the clock.
  Result<void> go() {
    if (!m_chunks.empty()) {
      if (auto done = hand_out_chunks(); !done) return done;
    }
    m_start = Clock::now();
    m_go.set(m_ticket);
    return {};
  }

  // --- after -------------------------------------------------------------------------------------------------------

  /// Waits for both answers. The worker's words may come with them; they come alone when it has failed.
  Result<void> watch() {
    auto const hot = m_start + undisturbed;
    bool first = false;
    Clock::time_point first_at;
    for (int turn = 0;; ++turn) {
      if (!first && m_done1.get() == m_nonce) {
        first_at = Clock::now();
        first = true;
      }
      if (first && m_done2.get() == m_nonce) {
        m_result.microseconds = microseconds(first_at - m_start);
        m_result.tail = microseconds(Clock::now() - first_at);
        return {};
      }
      if (turn % 1024 != 0 || Clock::now() < hot) continue;
      auto said = m_peer.receive(Deadline::after(std::chrono::duration<double>(0)));
      if (said) {
        m_result.reply = std::move(*said);
        bool const answered = m_done1.get() == m_nonce && m_done2.get() == m_nonce;
        if (m_result.armed && !answered) (void)not_held("it ended without both answers");
        if (m_result.armed) {
          m_result.microseconds = microseconds((first ? first_at : Clock::now()) - m_start);
        }
        return {};
      }
      if (said.error().outcome != Outcome::timeout) return fail(said.error());
      if (m_call.deadline.expired()) return fail(said.error());
    }
  }

  /// Pieces of the output as it is now, to be compared with what it is in the end.
  Result<void> take_samples() {
    auto const output = address_of(m_call.output);
    if (!output) return fail(output.error());
    if (m_call.output.bytes == 0) return {};
    for (int i = 0; i < samples; ++i) {
      std::uint64_t const at = m_random.below(m_call.output.bytes) / alignment * alignment;
      m_sampled.push_back(at);
    }
    return copy_samples(*output, samples_at);
  }

  Result<void> copy_samples(const std::byte* from, std::uint64_t to) {
    for (std::size_t i = 0; i < m_sampled.size(); ++i) {
      auto const status = cudaMemcpyAsync(m_gpu.pinned() + to + i * sample_bytes, from + m_sampled[i], sampled_bytes(i),
                                          cudaMemcpyDeviceToHost, m_gpu.stream());
      if (auto copied = checked(status, storing); !copied) return copied;
    }
    return m_gpu.synchronize(storing);
  }

  std::uint64_t sampled_bytes(std::size_t i) const {
    return std::min(sample_bytes, m_call.output.bytes - m_sampled[i]);
  }

  /// The worker's words come once its device is idle; then the results are moved out of its reach.
  Result<void> take_reply() {
    if (m_result.reply.empty()) {
      auto reply = m_peer.receive(m_call.deadline);
      if (!reply) return fail(reply.error());
      m_result.reply = std::move(*reply);
    }
    if (m_call.output.bytes == 0) return {};
    auto const output = address_of(m_call.output);
    auto const kept = address_of(m_call.kept);
    if (!output) return fail(output.error());
    if (!kept) return fail(kept.error());
    auto const status = cudaMemcpyAsync(*kept, *output, m_call.output.bytes, cudaMemcpyDeviceToDevice, m_gpu.stream());
    if (auto copied = checked(status, storing); !copied) return copied;
    if (auto done = copy_samples(*kept, kept_samples_at); !done) return done;
    for (std::size_t i = 0; i < m_sampled.size(); ++i) {
      auto const at = i * sample_bytes;
      if (std::memcmp(m_gpu.pinned() + samples_at + at, m_gpu.pinned() + kept_samples_at + at, sampled_bytes(i)) != 0) {
        return fail(Outcome::policy_violation,
                    "the result was still being written when the end of the work had been reported",
                    {"all work of forward must be done in the order of torch's current stream"});
      }
    }
    return {};
  }

  std::string nonce_text() const { return fmt::format("{:016x}", m_nonce); }

  static Result<void> broken() {
    return fail(Outcome::crash, "the worker sent something else than the protocol of a timed call asks for");
  }

  const Gpu& m_gpu;
  Peer& m_peer;
  const TimedCall& m_call;
  Counter m_go;
  Counter m_resident;
  Counter m_beat;
  Counter m_done1;
  Counter m_done2;
  std::uint64_t m_ticket;
  std::uint64_t m_nonce;
  util::SplitMix64 m_random;
  std::vector<Chunk> m_chunks;
  std::vector<std::uint64_t> m_sampled;
  Clock::time_point m_start;
  CallResult m_result;
};

}  // namespace

Result<CallResult> timed_call(const Gpu& gpu, Peer& peer, const TimedCall& call) {
  auto* const control = dynamic_cast<ControlArena*>(call.control);
  if (control == nullptr) return fail(Outcome::internal_error, "a timed call on a GPU without its control page");
  return GpuCall(gpu, peer, call, *static_cast<worker::ControlPage*>(control->page())).run();
}

}  // namespace cuda_agent::device
