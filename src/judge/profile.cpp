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
constexpr std::uint64_t memory_for_calls = std::uint64_t{256} << 20;
constexpr int null_calls = 11;
constexpr int alone_calls = 9;
constexpr int fewest_rounds = 12;  ///< the Wilcoxon interval at 99.5 % is finite from 9 on

/// Differences that the clock cannot resolve must not turn into a time of nothing or less.
double without_null(double span, double null, int calls) {
  return std::max(span - null, smallest_time) / static_cast<double>(calls);
}

/// Microseconds a call of eager on the inputs that are there, nothing else running.
Result<std::vector<double>> time_eager_alone(Exchange& exchange, const Overheads& overheads, util::Deadline deadline) {
  std::vector<double> times;
  bool warm = false;
  for (int i = 0; i < alone_calls + 1; ++i) {
    auto const alone = exchange.call(Arm::eager, deadline, "running the task's own model", warm);
    if (!alone) return fail(alone.error());
    if (i == 0) {
      auto const unchanged = exchange.inputs_unchanged(Arm::eager);
      if (!unchanged) return fail(unchanged.error());
      warm = *unchanged;
    } else {
      times.push_back(without_null(alone->microseconds, overheads.reference_null, overheads.calls));
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
    m_start = util::Clock::now();
    int rounds = 0;
    while (rounds < m_options.rule.most_rounds()) {
      if (rounds == 0) m_progress.step("timing the arms");
      if (m_options.rule.is_look(rounds)) m_progress.step(fmt::format("timing the arms: {} rounds so far", rounds));
      auto const counted = round();
      if (!counted) return fail(counted.error());
      if (!*counted) continue;
      ++rounds;
      if (m_options.rule.is_look(rounds) && enough(rounds)) break;
    }
    if (auto checked = drop_recompiled(); !checked) return fail(checked.error());
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
        (void)call(Arm::compiled);
        auto const graphs = graphs_so_far();
        if (!graphs) return fail(graphs.error());
        m_graphs = *graphs;
      }
    }
    for (int i = 0; i < 2; ++i) {
      auto const counted = round();
      if (!counted) return fail(counted.error());
    }
    m_spans.clear();
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
    m_spans.erase(arm);
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
      if (i == null_at) {
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
    for (auto const& [arm, one] : made) m_spans[arm].push_back(one.microseconds);
    return true;
  }

  /// One in each process, although only the reference's counts: the one that does less wakes up slower, by up to 40 µs.
  Result<void> empty_calls() {
    auto const null = m_exchange.call_null(Arm::eager, m_overheads.like, m_options.limits.ask);
    if (!null) return fail(null.error());
    m_nulls.push_back(*null);
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
    double const null = median(m_nulls);
    std::vector<double> result = m_spans.at(arm);
    for (double& span : result) span = without_null(span, null, m_overheads.calls);
    return result;
  }

  RatioEstimate ratio_to(Arm baseline) const {
    return estimate_ratio(times(baseline), times(Arm::candidate), m_options.rule.confidence);
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
    speed.mode = m_exchange.backend().mode();
    speed.rounds = rounds;
    speed.calls_per_round = m_overheads.calls;
    for (auto const& [arm, spans] : m_spans) {
      ArmReport one;
      one.name = to_string(arm);
      one.calls = rounds * m_overheads.calls;
      one.time = estimate_location(times(arm), m_options.rule.confidence);
      one.null = median(m_nulls) / m_overheads.calls;
      speed.arms.push_back(one);
    }
    for (Arm const arm : m_arms) {
      auto const estimate = ratio_to(arm);
      RatioReport one;
      one.baseline = to_string(arm);
      one.ratio = estimate.ratio;
      one.confidence = estimate.confidence;
      speed.unstable = speed.unstable || m_options.rule.unstable(one.ratio);
      speed.ratios.push_back(one);
    }
    double const span = median(times(Arm::candidate)) * m_overheads.calls;
    speed.launch_bound = span < 3 * median(m_nulls);
    auto const slowness = eager_guard();
    if (!slowness) return fail(slowness.error());
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
    Interval const now = estimate_location(times(Arm::eager), m_options.rule.confidence);
    Interval const before = estimate_location(m_overheads.eager_alone, m_options.rule.confidence);
    if (!clearly_faster(before, now)) return 1;
    m_candidate.end();
    auto const again = time_eager_alone(m_exchange, m_overheads, m_options.limits.ask);
    if (!again) return fail(again.error());
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
  std::map<Arm, std::vector<double>> m_spans;  ///< microseconds of K calls as measured, by round
  /// Of empty calls in the reference's process, one a round: nothing in the candidate's can be trusted any more, and
  /// what an empty call takes follows the machine's state.
  std::vector<double> m_nulls;
  util::Clock::time_point m_start;
  ProfileResult m_result;
  double m_slowest = 0;
  /// Every timed call follows one of the same arm that is not timed. Otherwise the reference, whose process draws the
  /// inputs, would find the memory of its results in the caches, and the candidate would not.
  bool m_warm = false;
  int m_graphs = 0;
  bool m_compiled_differs = false;
};

}  // namespace

int calls_for(double eager_microseconds, double null_microseconds, std::uint64_t bytes_a_call) {
  double const span = std::max(eager_microseconds - null_microseconds, 1.0);
  auto const wanted = static_cast<int>(std::ceil(std::min(wanted_span / span, static_cast<double>(most_calls))));
  auto const fitting = static_cast<int>(
      std::min<std::uint64_t>(memory_for_calls / std::max<std::uint64_t>(bytes_a_call, 1), most_calls));
  return std::clamp(wanted, 1, std::max(fitting, 1));
}

Result<Overheads> measure_overheads(Exchange& exchange, const OutputNode& like, double eager_microseconds,
                                    std::uint64_t seed, util::Deadline deadline) {
  Overheads overheads;
  overheads.like = like;
  util::SplitMix64 seeds(seed);
  auto const nulls = [&]() -> Result<double> {
    std::vector<double> spans;
    for (int i = 0; i < null_calls; ++i) {
      auto const span = exchange.call_null(Arm::eager, like, deadline);
      if (!span) return fail(span.error());
      if (i > 0) spans.push_back(*span);
    }
    return median(spans);
  };
  if (auto drawn = exchange.draw(seeds(), 1); !drawn) return fail(drawn.error());
  auto const single = nulls();
  if (!single) return fail(single.error());
  overheads.calls = calls_for(eager_microseconds, *single, exchange.bytes_a_call());
  if (overheads.calls > 1) {
    if (auto drawn = exchange.draw(seeds(), overheads.calls); !drawn) return fail(drawn.error());
  }
  auto const reference = nulls();
  if (!reference) return fail(reference.error());
  overheads.reference_null = *reference;
  auto alone = time_eager_alone(exchange, overheads, deadline);
  if (!alone) return fail(alone.error());
  overheads.eager_alone = std::move(*alone);
  return overheads;
}

Result<ProfileResult> profile(Exchange& exchange, Worker& reference, Worker& candidate, const Overheads& overheads,
                              const ProfileOptions& options, std::uint64_t seed, Correctness& correctness,
                              util::Progress& progress) {
  return Profiler(exchange, reference, candidate, overheads, options, seed, correctness, progress).run();
}

}  // namespace cuda_agent::judge
