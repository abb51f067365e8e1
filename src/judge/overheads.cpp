#include "judge/overheads.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "judge/statistics.hpp"
#include "util/random.hpp"

namespace cuda_agent::judge {
namespace {

constexpr double wanted_span = 200;  ///< µs
constexpr int most_calls = 64;
constexpr int null_calls = 11;
constexpr int few_null_calls = 5;
/// µs: of so long a span no interval of ours is as narrow as what an empty call scatters by.
constexpr double long_span = 1000;
constexpr int alone_calls = 9;

/// Storing a result may take this much longer than storing the null's before it counts as the model's own work.
constexpr double free_tail = 2;  ///< µs
constexpr double free_tail_share = 1.01;
/// Two processes' copies of a model that is bound by memory differ by this much, which physical addresses they got
/// (docs/measured.md).
constexpr double placement = 0.007;
constexpr double quickest_launch = 2;  ///< µs of a processor: no launch is enqueued faster from Python
constexpr int streams_tried = 32;
constexpr double near_enough = 1;  ///< µs between the two chains
constexpr int chains = 5;

}  // namespace

double without_null(double microseconds, double tail, const NullCall& null, int calls) {
  double const late = std::max(tail - null.tail * free_tail_share - free_tail, 0.0);
  return std::max(microseconds + late - null.microseconds, smallest_time) / static_cast<double>(calls);
}

double between_processes(const Overheads& overheads, device::CallMode mode, double span, double enqueued) {
  double const nulls = overheads.reference.of(mode).spread + overheads.candidate.of(mode).spread;
  double const launches = enqueued / quickest_launch;
  double const launching =
      launches * std::abs(overheads.channels.reference - overheads.channels.candidate) / chain_launches;
  double const whole = std::max(span, smallest_time);
  return std::hypot(placement, nulls / whole, launching / whole);
}

int calls_for(double eager_microseconds, double null_microseconds, std::uint64_t bytes_a_call, std::uint64_t memory) {
  double const span = std::max(eager_microseconds - null_microseconds, 1.0);
  auto const wanted = static_cast<int>(std::ceil(std::min(wanted_span / span, static_cast<double>(most_calls))));
  auto const fitting =
      static_cast<int>(std::min<std::uint64_t>(memory / std::max<std::uint64_t>(bytes_a_call, 1), most_calls));
  return std::clamp(wanted, 1, std::max(fitting, 1));
}

Result<std::vector<double>> time_eager_alone(Exchange& exchange, const Overheads& overheads, util::Deadline deadline) {
  std::vector<double> times;
  bool warm = false;
  for (int i = 0; i < 3 * alone_calls && static_cast<int>(times.size()) < alone_calls; ++i) {
    auto const one = exchange.call(Arm::eager, deadline, "running the task's own model", warm);
    if (!one) return fail(one.error());
    if (i == 0) {
      auto const unchanged = exchange.inputs_unchanged(Arm::eager);
      if (!unchanged) return fail(unchanged.error());
      warm = *unchanged;
    } else if (one->counts) {
      times.push_back(without_null(one->microseconds, one->tail, overheads.reference.of(one->mode), overheads.calls));
    }
  }
  return times;
}

namespace {

/// Measures what the calls of a task cost beside the model, before a candidate is there.
class OverheadMeasurement {
 public:
  OverheadMeasurement(Exchange& exchange, const OutputNode& like, double eager_microseconds, std::uint64_t seed,
                      util::Deadline deadline)
      : m_exchange(exchange), m_like(like), m_seeds(seed), m_deadline(deadline) {
    m_overheads.eager_span = eager_microseconds;
  }

  Result<Overheads> run() {
    if (auto drawn = m_exchange.draw(m_seeds(), 1); !drawn) return fail(drawn.error());
    if (auto warm = warm_up_eager(); !warm) return fail(warm.error());
    if (m_exchange.backend().open_calls() > 0) {
      if (auto matched = match_channels(); !matched) return fail(matched.error());
    }
    auto const single = nulls(Arm::eager);
    if (!single) return fail(single.error());
    m_overheads.calls = calls_for(m_overheads.eager_span, single->microseconds, m_exchange.bytes_a_call(),
                                  m_exchange.backend().memory_for_calls());
    for (;;) {
      if (auto drawn = m_exchange.draw(m_seeds(), m_overheads.calls); !drawn) return fail(drawn.error());
      auto const armed = warm_up_eager();
      if (!armed) return fail(armed.error());
      if (*armed || m_overheads.calls == 1) break;
      m_overheads.calls = std::max(m_overheads.calls / 4, 1);  // fewer launches in one gate
    }
    if (m_exchange.backend().open_calls() == 0) {
      // One way only, and among the rounds the reference's empty calls count for both.
      auto const own = m_overheads.calls == 1 ? single : nulls(Arm::eager);
      if (!own) return fail(own.error());
      m_overheads.reference = m_overheads.candidate = {*own, *own};
    } else if (auto done = both_ways(); !done) {
      return fail(done.error());
    }
    return alone();
  }

 private:
  /// Until the calls count. False: they cannot be armed, and are timed from end to end from now on.
  Result<bool> warm_up_eager() {
    if (m_exchange.backend().open_calls() == 0) return true;
    int refusals = 0;
    for (int i = 0, good = 0; good < 3; ++i) {
      auto const one = m_exchange.call(Arm::eager, m_deadline, "running the task's own model");
      if (!one) return fail(one.error());
      good += one->counts ? 1 : 0;
      if (one->counts) m_overheads.eager_span = one->microseconds / std::max(m_exchange.calls(), 1);
      refusals += one->armed ? 0 : 1;
      if (refusals < most_refusals) continue;
      if (m_exchange.calls() > 1) return false;
      m_exchange.set_mode(device::CallMode::end_to_end);
      m_overheads.not_gated = one->refused;
      refusals = 0;
    }
    return true;
  }

  /// The reference gets that one of its streams whose launches cost what the candidate's do.
  Result<void> match_channels() {
    m_exchange.set_mode(device::CallMode::gated);
    m_overheads.not_gated.clear();  // that is decided anew, on the stream that is chosen here
    auto const wanted = chain(Arm::candidate);
    if (!wanted) return fail(wanted.error());
    Channels& found = m_overheads.channels;
    found.candidate = *wanted;
    for (int stream = 0; stream < streams_tried && (stream == 0 || std::abs(found.reference - *wanted) > near_enough);
         ++stream) {
      if (auto used = m_exchange.use_stream(stream); !used) return used;
      auto const own = chain(Arm::eager);
      if (!own) return fail(own.error());
      ++found.tried;
      if (stream > 0 && std::abs(*own - *wanted) >= std::abs(found.reference - *wanted)) continue;
      found.stream = stream;
      found.reference = *own;
    }
    return m_exchange.use_stream(found.stream, true);
  }

  Result<double> chain(Arm arm) {
    std::vector<double> spans;
    for (int i = 0; static_cast<int>(spans.size()) < chains && i < 4 * chains; ++i) {
      auto const one = m_exchange.call_null(arm, m_like, m_deadline, {.launches = chain_launches, .stored = false});
      if (!one) return fail(one.error());
      if (one->counts) spans.push_back(one->microseconds);
    }
    if (spans.empty()) return fail(nothing_timed());
    return median(spans);
  }

  static Error nothing_timed() {
    return {Outcome::environment_error,
            "no empty call could be timed on this device",
            {"see whether other programs use it: nvidia-smi"}};
  }

  struct EmptyCalls {
    std::vector<double> spans;
    std::vector<double> tails;
  };

  /// `wanted` empty calls that count, the first left out.
  Result<EmptyCalls> empty_calls(Arm arm, NullKind kind, int wanted) {
    EmptyCalls calls;
    for (int i = 0; static_cast<int>(calls.spans.size()) < wanted && i < 4 * wanted; ++i) {
      auto const one = m_exchange.call_null(arm, m_like, m_deadline, kind);
      if (!one) return fail(one.error());
      if (i == 0 || !one->counts) continue;
      calls.spans.push_back(one->microseconds);
      calls.tails.push_back(one->tail);
    }
    if (calls.spans.empty()) return fail(nothing_timed());
    return calls;
  }

  /// What K calls cost beside the model. On a GPU a model's results have just been written when they are stored, so the
  /// same is done here:
  ///   tail   of empty calls that write before they store: a longer one would be a gift to a forged first answer
  ///   span   nothing at all, and for the K − 1 results that are stored before the first answer (writing and storing) −
  ///          (writing): a copy of what lies in memory takes longer than one of what lies in the cache
  Result<NullCall> nulls(Arm arm) {
    int const wanted = m_overheads.eager_span > long_span ? few_null_calls : null_calls;
    auto const plain = empty_calls(arm, {}, wanted);
    if (!plain) return fail(plain.error());
    NullCall null{median(plain->spans), median(plain->tails), true,
                  (quantile(plain->spans, 0.9) - quantile(plain->spans, 0.1)) / 2};
    if (m_exchange.backend().open_calls() == 0) return null;
    auto const written = empty_calls(arm, {.written = true}, few_null_calls);
    if (!written) return fail(written.error());
    null.tail = median(written->tails);
    if (m_exchange.calls() == 1) return null;
    auto const nothing = empty_calls(arm, {.stored = false}, few_null_calls);
    if (!nothing) return fail(nothing.error());
    auto const writing = empty_calls(arm, {.written = true, .stored = false}, few_null_calls);
    if (!writing) return fail(writing.error());
    null.microseconds = median(nothing->spans) + std::max(median(written->spans) - median(writing->spans), 0.0);
    return null;
  }

  Result<void> both_ways() {
    device::CallMode const wanted = m_exchange.mode();
    for (auto const mode : {device::CallMode::gated, device::CallMode::end_to_end}) {
      m_exchange.set_mode(mode);
      for (Arm const arm : {Arm::eager, Arm::candidate}) {
        auto const null = nulls(arm);
        if (!null) return fail(null.error());
        Nulls& place = arm == Arm::candidate ? m_overheads.candidate : m_overheads.reference;
        (mode == device::CallMode::gated ? place.gated : place.end_to_end) = *null;
      }
    }
    m_exchange.set_mode(wanted);
    return {};
  }

  Result<Overheads> alone() {
    m_overheads.alone_mode = m_exchange.mode();
    auto times = time_eager_alone(m_exchange, m_overheads, m_deadline);
    if (!times) return fail(times.error());
    m_overheads.eager_alone = std::move(*times);
    return std::move(m_overheads);
  }

  Exchange& m_exchange;
  const OutputNode& m_like;
  util::SplitMix64 m_seeds;
  util::Deadline m_deadline;
  Overheads m_overheads;
};

}  // namespace

Result<Overheads> measure_overheads(Exchange& exchange, const OutputNode& like, double eager_microseconds,
                                    std::uint64_t seed, util::Deadline deadline) {
  auto overheads = OverheadMeasurement(exchange, like, eager_microseconds, seed, deadline).run();
  if (overheads) overheads->like = like;
  return overheads;
}

}  // namespace cuda_agent::judge
