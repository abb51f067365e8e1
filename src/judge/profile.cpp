#include "judge/profile.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <spdlog/fmt/fmt.h>

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
constexpr int fewest_rounds = 12;  ///< the Wilcoxon interval at 99.5 % is finite from 9 on

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
/// A call that could not be armed so often in a row cannot be.
constexpr int most_refusals = 3;
constexpr int most_warm_rounds = 10;

const char* name_of(Arm arm) { return arm == Arm::candidate ? "the candidate" : "the task's own model"; }

/// Microseconds a call of eager on the inputs that are there, nothing else running: empty where it cannot be timed.
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

class Profiler {
 public:
  Profiler(Exchange& exchange, Worker& reference, Worker& candidate, const Overheads& overheads,
           const ProfileOptions& options, std::uint64_t seed, Correctness& correctness, util::Progress& progress)
      : m_exchange(exchange),
        m_reference(reference),
        m_candidate(candidate),
        m_overheads(overheads),
        m_options(options),
        m_random(seed),
        m_correctness(correctness),
        m_progress(progress),
        m_arms(options.baselines) {}

  Result<ProfileResult> run() {
    if (auto warm = warm_up(); !warm) return fail(warm.error());
    if (auto ready = m_options.when_warm(); !ready) return fail(ready.error());
    m_start = util::Clock::now();
    m_repeated = 0;
    int rounds = 0;
    while (rounds < m_options.rule.most_rounds()) {
      if (rounds == 0) m_progress.step("timing the arms");
      if (m_options.rule.is_look(rounds)) m_progress.step(fmt::format("timing the arms: {} rounds so far", rounds));
      auto const counted = round();
      if (!counted) return fail(counted.error());
      if (m_start_again) {
        rounds = 0;
        m_made.clear();
        m_start_again = false;
      }
      if (!*counted) {
        if (++m_repeated > 4 * m_options.rule.most_rounds()) return fail(unsteady());
        continue;
      }
      ++rounds;
      if (m_options.rule.is_look(rounds) && enough(rounds)) break;
    }
    if (auto checked = drop_recompiled(); !checked) return fail(checked.error());
    if (auto done = m_options.when_timed(); !done) return fail(done.error());
    if (auto reported = report(rounds); !reported) return fail(reported.error());
    return std::move(m_result);
  }

 private:
  util::Deadline candidate_limit() const {
    double const patience = std::min(m_options.limits.candidate_seconds, 10 + 20e-6 * m_slowest);
    return util::Deadline::after(std::chrono::duration<double>(patience)).earlier(m_options.limits.ask);
  }

  Result<ArmCall> call(Arm arm) {
    auto const limit = arm == Arm::candidate ? candidate_limit() : m_options.limits.ask;
    auto made = m_exchange.call(
        arm, limit, arm == Arm::candidate ? "running ModelNew.forward (timed)" : "running the task's own model (timed)",
        m_warm);
    if (made && arm == Arm::eager) m_slowest = std::max(m_slowest, made->microseconds);
    return made;
  }

  /// Every arm runs in every slot before it is timed. What fails here of the compiled arm leaves it out.
  Result<void> warm_up() {
    if (auto drawn = m_exchange.draw(m_random(), m_overheads.calls); !drawn) return drawn;
    bool const with_compiled = std::find(m_arms.begin(), m_arms.end(), Arm::compiled) != m_arms.end();
    if (with_compiled) {
      m_progress.step("compiling the baseline with torch.compile");
      auto const compiled = call(Arm::compiled);
      if (!compiled && compiled.error().outcome != Outcome::task_error) return fail(compiled.error());
      if (!compiled) {
        if (!reference_alive()) return fail(compiled.error());
        leave_out(Arm::compiled, fmt::format("torch.compile failed: {}", compiled.error().message));
      } else {
        // It must have been compiled for good before the candidate runs beside it.
        for (int i = 0; i < m_exchange.backend().open_calls() + 1; ++i) (void)call(Arm::compiled);
        auto const graphs = graphs_so_far();
        if (!graphs) return fail(graphs.error());
        m_graphs = *graphs;
      }
    }
    for (int i = 0, good = 0; good < 2 && i < most_warm_rounds; ++i) {
      auto const counted = round();
      if (!counted) return fail(counted.error());
      good += *counted ? 1 : 0;
    }
    m_start_again = false;
    m_made.clear();
    m_nulls.clear();
    return {};
  }

  bool reference_alive() {
    return m_reference.request({{"op", "precision"}}, {}, m_options.limits.ask, "asking for its flags").has_value();
  }

  Result<int> graphs_so_far() {
    auto const reply = m_reference.request({{"op", "recompiles"}}, {}, m_options.limits.ask, "counting graphs");
    if (!reply) return fail(reply.error());
    return reply->value("graphs", 0);
  }

  void leave_out(Arm arm, std::string reason) {
    m_arms.erase(std::remove(m_arms.begin(), m_arms.end(), arm), m_arms.end());
    m_made.erase(arm);
    m_result.not_measured[fmt::format("/speed/{}", to_string(arm))] = reason;
    m_result.speed.disturbed.push_back(fmt::format("the {} baseline is left out: {}", to_string(arm), reason));
  }

  /// One round. False: it has to be repeated, since results were dropped to make room for larger ones.
  Result<bool> round() {
    if (auto drawn = m_exchange.draw(m_random(), m_overheads.calls); !drawn) return fail(drawn.error());
    int const generation = m_exchange.generation();
    std::vector<Arm> order = m_arms;
    if (std::find(order.begin(), order.end(), Arm::eager) == order.end()) order.push_back(Arm::eager);
    order.push_back(Arm::candidate);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[m_random.below(i)]);

    std::map<Arm, ArmCall> made;
    bool inputs_may_change = false;
    auto const null_at = m_random.below(order.size() + 1);
    for (std::size_t i = 0; i <= order.size(); ++i) {
      if (i == null_at && m_exchange.backend().open_calls() == 0) {
        if (auto done = empty_calls(); !done) return fail(done.error());
      }
      if (i == order.size()) break;
      Arm const arm = order[i];
      auto one = call(arm);
      if (!one) return fail(one.error());
      if (arm == Arm::eager) {
        auto const unchanged = m_exchange.inputs_unchanged(Arm::eager);
        if (!unchanged) return fail(unchanged.error());
        inputs_may_change = !*unchanged;
      }
      made.emplace(arm, std::move(*one));
    }
    if (m_exchange.generation() != generation) return false;
    bool const all_count = note_refusals(made);
    m_warm = !inputs_may_change;

    auto const checked = check_candidate(m_exchange, made.at(Arm::eager), made.at(Arm::candidate), inputs_may_change,
                                         m_options.tolerance, 0, m_correctness);
    if (!checked) {
      Error error = checked.error();
      if (error.outcome == Outcome::wrong) error.message = "a timed call: " + error.message;
      return fail(std::move(error));
    }
    m_correctness.timed_compared += m_exchange.calls();
    if (auto same = check_compiled(made); !same) return fail(same.error());
    if (!all_count) return false;
    for (auto& [arm, one] : made) m_made[arm].push_back(std::move(one));
    return true;
  }

  NullCall null_of(Arm arm, device::CallMode mode) const {
    if (!m_nulls.empty()) return {median(m_nulls), 0, true, 0};
    return (arm == Arm::candidate ? m_overheads.candidate : m_overheads.reference).of(mode);
  }

  /// Whether the times of a round all count. An arm that cannot be held until everything is enqueued is timed from end
  /// to end: a reference's so that all are, the candidate's alone.
  bool note_refusals(const std::map<Arm, ArmCall>& made) {
    bool all_count = true;
    for (auto const& [arm, one] : made) {
      all_count = all_count && one.counts;
      m_refusals[arm] = one.armed ? 0 : m_refusals[arm] + 1;
      if (m_refusals[arm] < most_refusals || m_exchange.mode(arm) != device::CallMode::gated) continue;
      m_refusals[arm] = 0;
      m_start_again = true;
      std::string const why = fmt::format("{} waits for the GPU or launches more than can be enqueued", name_of(arm));
      if (arm == Arm::candidate) {
        m_exchange.set_mode(arm, device::CallMode::end_to_end);
        m_result.speed.disturbed.push_back(why + ": it alone is timed from end to end");
      } else {
        m_exchange.set_mode(device::CallMode::end_to_end);
        m_result.speed.disturbed.push_back(why + ": all arms are timed from end to end");
      }
    }
    return all_count;
  }

  static Error unsteady() {
    return {Outcome::environment_error,
            "the timed calls were disturbed again and again: too few of them count",
            {"see whether other programs use this GPU: nvidia-smi"}};
  }

  /// One in each process, although only the reference's counts: the one that does less wakes up slower, by up to 40 µs.
  Result<void> empty_calls() {
    auto const null = m_exchange.call_null(Arm::eager, m_overheads.like, m_options.limits.ask);
    if (!null) return fail(null.error());
    m_nulls.push_back(null->microseconds);
    auto const other = m_exchange.call_null(Arm::candidate, m_overheads.like, candidate_limit());
    return other ? Result<void>() : fail(other.error());
  }

  Result<void> check_compiled(const std::map<Arm, ArmCall>& made) {
    auto const compiled = made.find(Arm::compiled);
    if (compiled == made.end() || m_compiled_differs) return {};
    for (int k = 0; k < m_exchange.calls(); ++k) {
      auto const i = static_cast<std::size_t>(k);
      auto const check =
          check_output(m_exchange.backend(), made.at(Arm::eager).outputs.at(i), m_exchange.kept(Arm::eager, k),
                       compiled->second.outputs.at(i), m_exchange.kept(Arm::compiled, k), m_options.tolerance);
      if (!check) return fail(check.error());
      if (!check->ok) {
        m_compiled_differs = true;
        m_result.findings.push_back(
            {"compiled_differs", fmt::format("torch.compile's result differs from eager's: {}", check->sentence)});
        return {};
      }
    }
    return {};
  }

  /// The spans of an arm without the empty call's, microseconds a call, by round.
  std::vector<double> times(Arm arm) const {
    std::vector<double> result;
    for (ArmCall const& one : m_made.at(arm)) {
      result.push_back(without_null(one.microseconds, one.tail, null_of(arm, one.mode), m_overheads.calls));
    }
    return result;
  }

  RatioEstimate ratio_to(Arm baseline) const {
    return estimate_ratio(times(baseline), times(Arm::candidate), m_options.rule.confidence);
  }

  /// What the interval of a ratio carries beside the rounds' own scatter.
  std::optional<double> between(Arm baseline) const {
    if (m_overheads.channels.tried == 0) return std::nullopt;
    double const span =
        std::min(median(times(baseline)), median(times(Arm::candidate))) * static_cast<double>(m_overheads.calls);
    return between_processes(m_overheads, m_exchange.mode(baseline), span, m_exchange.enqueued(baseline));
  }

  std::optional<ChannelReport> channels() const {
    Channels const& c = m_overheads.channels;
    if (c.tried == 0) return std::nullopt;
    return ChannelReport{c.stream, c.tried, chain_launches, c.reference, c.candidate};
  }

  bool enough(int rounds) const {
    double const spent = std::chrono::duration<double>(util::Clock::now() - m_start).count();
    if (spent > 10 * m_options.budget_seconds) return true;
    if (rounds < fewest_rounds) return false;
    if (spent > m_options.budget_seconds) return true;
    return std::all_of(m_arms.begin(), m_arms.end(),
                       [&](Arm arm) { return m_options.rule.settled(ratio_to(arm).ratio); });
  }

  Result<void> drop_recompiled() {
    if (std::find(m_arms.begin(), m_arms.end(), Arm::compiled) == m_arms.end()) return {};
    auto const graphs = graphs_so_far();
    if (!graphs) return fail(graphs.error());
    if (*graphs > m_graphs) {
      leave_out(Arm::compiled, fmt::format("it was compiled anew {} times while it was timed", *graphs - m_graphs));
    }
    return {};
  }

  Result<void> report(int rounds) {
    Speed& speed = m_result.speed;
    speed.mode = m_exchange.backend().mode(m_exchange.mode());
    speed.rounds = rounds;
    speed.calls_per_round = m_overheads.calls;
    for (auto const& [arm, made] : m_made) {
      ArmReport one;
      one.name = to_string(arm);
      one.calls = rounds * m_overheads.calls;
      one.time = estimate_location(times(arm), m_options.rule.confidence);
      NullCall const null = null_of(arm, m_exchange.mode(arm));
      one.null = null.microseconds / m_overheads.calls;
      speed.arms.push_back(one);
      ArmSamples samples{std::string(one.name), null.microseconds, null.tail, {}, {}};
      for (ArmCall const& call : made) {
        samples.spans.push_back(call.microseconds);
        samples.tails.push_back(call.tail);
      }
      speed.samples.push_back(std::move(samples));
    }
    speed.channels = channels();
    for (Arm const arm : m_arms) {
      auto const estimate = ratio_to(arm);
      RatioReport one;
      one.baseline = to_string(arm);
      one.ratio = estimate.ratio;
      one.confidence = estimate.confidence;
      one.between_processes = between(arm);
      one.ratio.low /= 1 + one.between_processes.value_or(0);
      one.ratio.high *= 1 + one.between_processes.value_or(0);
      speed.unstable = speed.unstable || m_options.rule.unstable(one.ratio);
      speed.ratios.push_back(one);
    }
    double const span = median(times(Arm::candidate)) * m_overheads.calls;
    speed.launch_bound = span < 3 * null_of(Arm::candidate, m_exchange.mode(Arm::candidate)).microseconds;
    auto const slowness = eager_guard();
    if (!slowness) return fail(slowness.error());
    speed.eager_factor = *slowness;
    for (RatioReport& one : speed.ratios) {
      if (one.baseline != to_string(Arm::eager)) continue;
      one.ratio.estimate *= *slowness;
      one.ratio.low *= *slowness;
      one.ratio.high *= *slowness;
    }
    return {};
  }

  /// A candidate could slow the baseline that is timed beside it. Where eager was clearly faster before there was a
  /// candidate, it is timed once more with the candidate's processes gone: if it is fast again, that is what counts; if
  /// it is not, the machine has changed, which hit both arms alike. The factor (≤ 1) by which the ratio shrinks.
  Result<double> eager_guard() {
    if (m_exchange.mode() != m_overheads.alone_mode || m_overheads.eager_alone.empty()) return 1;
    Interval const now = estimate_location(times(Arm::eager), m_options.rule.confidence);
    Interval const before = estimate_location(m_overheads.eager_alone, m_options.rule.confidence);
    if (!clearly_faster(before, now)) return 1;
    auto const again = eager_without_candidate();
    if (!again && (again.error().outcome == Outcome::interrupted || m_options.limits.ask.expired())) {
      return fail(again.error());
    }
    if (!again) {
      m_result.speed.disturbed.push_back(
          fmt::format("eager took {:.1f} µs beside the candidate and {:.1f} µs before it was loaded, which counts: the "
                      "task's model could not be timed again ({})",
                      now.estimate, before.estimate, again.error().message));
      return before.estimate / now.estimate;
    }
    if (again->empty()) return 1;
    Interval const after = estimate_location(*again, m_options.rule.confidence);
    if (!clearly_faster(after, now)) {
      m_result.speed.disturbed.push_back(
          fmt::format("eager took {:.1f} µs before the candidate was loaded, {:.1f} µs beside it and {:.1f} µs when it "
                      "was gone: the machine has become slower",
                      before.estimate, now.estimate, after.estimate));
      return 1;
    }
    m_result.speed.disturbed.push_back(
        fmt::format("eager took {:.1f} µs beside the candidate, {:.1f} µs before it was loaded and {:.1f} µs when it "
                    "was gone: the slower of the two without it counts",
                    now.estimate, before.estimate, after.estimate));
    return std::max(before.estimate, after.estimate) / now.estimate;
  }

  /// The inputs are drawn as for every round: what came last may have been something else (when_timed).
  Result<std::vector<double>> eager_without_candidate() {
    auto drawn = m_exchange.draw(m_random(), m_overheads.calls);
    m_candidate.end();
    if (!drawn) return fail(drawn.error());
    return time_eager_alone(m_exchange, m_overheads, m_options.limits.ask);
  }

  static bool clearly_faster(const Interval& alone, const Interval& beside) {
    constexpr double noticeable = 1.02;
    return alone.high * noticeable < beside.low;
  }

  Exchange& m_exchange;
  Worker& m_reference;
  Worker& m_candidate;
  const Overheads& m_overheads;
  const ProfileOptions& m_options;
  util::SplitMix64 m_random;
  Correctness& m_correctness;
  util::Progress& m_progress;
  std::vector<Arm> m_arms;                     ///< baselines that are still in
  std::map<Arm, std::vector<ArmCall>> m_made;  ///< as measured, by round
  /// Of empty calls in the reference's process, one a round: nothing in the candidate's can be trusted any more, and
  /// what an empty call takes follows the machine's state.
  std::vector<double> m_nulls;
  util::Clock::time_point m_start;
  ProfileResult m_result;
  std::map<Arm, int> m_refusals;  ///< in a row
  double m_slowest = 0;
  /// Every timed call follows one of the same arm that is not timed. Otherwise the reference, whose process draws the
  /// inputs, would find the memory of its results in the caches, and the candidate would not.
  bool m_warm = false;
  int m_graphs = 0;
  int m_repeated = 0;
  bool m_start_again = false;  ///< the way of timing has changed
  bool m_compiled_differs = false;
};

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
    if (auto done = both_ways(); !done) return fail(done.error());
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
      refusals = 0;
    }
    return true;
  }

  /// The reference gets that one of its streams whose launches cost what the candidate's do.
  Result<void> match_channels() {
    m_exchange.set_mode(device::CallMode::gated);
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
      if (m_exchange.backend().open_calls() == 0) {  // one way only
        m_overheads.reference.end_to_end = m_overheads.reference.gated;
        m_overheads.candidate.end_to_end = m_overheads.candidate.gated;
        break;
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

Result<ProfileResult> profile(Exchange& exchange, Worker& reference, Worker& candidate, const Overheads& overheads,
                              const ProfileOptions& options, std::uint64_t seed, Correctness& correctness,
                              util::Progress& progress) {
  return Profiler(exchange, reference, candidate, overheads, options, seed, correctness, progress).run();
}

}  // namespace cuda_agent::judge
