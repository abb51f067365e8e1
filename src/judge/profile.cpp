#include "judge/profile.hpp"

#include <algorithm>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "judge/stopwatch.hpp"
#include "util/random.hpp"

namespace cuda_agent::judge {
namespace {

constexpr int most_warm_rounds = 13;

std::string waits(const char* who, const std::string& refused) {
  return fmt::format("{} waits for the GPU or launches more than can be enqueued ({})", who, refused);
}

const char* name_of(Arm arm) { return arm == Arm::candidate ? "the candidate" : "the task's own model"; }

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
    {
      Stopwatch const watch(m_result.timeline, "untimed calls of every arm", "rounds");
      if (auto warm = warm_up(); !warm) return fail(warm.error());
    }
    if (auto ready = m_options.when_warm(); !ready) return fail(ready.error());
    auto const rounds = time_rounds();
    if (!rounds) return fail(rounds.error());
    if (auto checked = drop_recompiled(); !checked) return fail(checked.error());
    if (auto done = m_options.when_timed(); !done) return fail(done.error());
    if (auto reported = report(*rounds); !reported) return fail(reported.error());
    return std::move(m_result);
  }

 private:
  /// How many there were.
  Result<int> time_rounds() {
    Stopwatch const watch(m_result.timeline, "timed rounds", "rounds");
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
    return rounds;
  }

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
      Stopwatch const watch(m_result.timeline, "torch.compile", "rounds");
      m_progress.step("compiling the baseline with torch.compile");
      auto const compiled = call(Arm::compiled);
      if (!compiled && compiled.error().outcome != Outcome::task_error) return fail(compiled.error());
      if (!compiled) {
        if (!reference_alive()) return fail(compiled.error());
        leave_out(Arm::compiled, fmt::format("torch.compile failed: {}", compiled.error().message));
      } else {
        // It must have been compiled for good before the candidate runs beside it.
        for (int i = 0; i < m_exchange.model_warm_ups() + 1; ++i) (void)call(Arm::compiled);
        auto const graphs = graphs_so_far();
        if (!graphs) return fail(graphs.error());
        m_graphs = *graphs;
      }
    }
    if (auto done = m_options.when_compiled(); !done) return done;
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
    if (auto drawn = m_exchange.draw(m_next, m_overheads.calls); !drawn) return fail(drawn.error());
    m_next = m_random();
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

    DrawAhead const ahead(m_exchange, m_next, m_overheads.calls);
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
      std::string const why = waits(name_of(arm), one.refused);
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
    std::vector<Interval> ratios;
    ratios.reserve(m_arms.size());
    for (Arm const arm : m_arms) ratios.push_back(ratio_to(arm).ratio);
    return m_options.rule.enough(rounds, std::chrono::duration<double>(util::Clock::now() - m_start).count(), ratios);
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
    if (!m_overheads.not_gated.empty()) {
      speed.disturbed.push_back(waits(name_of(Arm::eager), m_overheads.not_gated) +
                                ": all arms are timed from end to end");
    }
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
    Stopwatch const watch(m_result.timeline, "eager once more, alone", "rounds");
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
  std::uint64_t m_next = m_random();  ///< seed of the next round's inputs
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

Result<ProfileResult> profile(Exchange& exchange, Worker& reference, Worker& candidate, const Overheads& overheads,
                              const ProfileOptions& options, std::uint64_t seed, Correctness& correctness,
                              util::Progress& progress) {
  return Profiler(exchange, reference, candidate, overheads, options, seed, correctness, progress).run();
}

}  // namespace cuda_agent::judge
