#include "judge/verify.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "util/random.hpp"

namespace cuda_agent::judge {
namespace {

/// A candidate may take this many times what the reference took, and this many seconds more, before it counts as hung.
constexpr double patience_factor = 20;
constexpr double patience_seconds = 10;

/// `next`: the seed of the trial after this one.
Result<void> trial_once(Exchange& exchange, const VerifyOptions& options, std::uint64_t seed, std::uint64_t next,
                        int trial, Correctness& correctness) {
  if (auto drawn = exchange.draw(seed, 1); !drawn) return drawn;
  auto const eager = exchange.call(Arm::eager, options.limits.ask, "running the task's own model");
  if (!eager) return fail(eager.error());
  auto const kept = exchange.inputs_unchanged(Arm::eager);
  if (!kept) return fail(kept.error());
  double const patience =
      std::min(options.limits.candidate_seconds, patience_seconds + patience_factor * eager->microseconds * 1e-6);
  auto const limit = util::Deadline::after(std::chrono::duration<double>(patience)).earlier(options.limits.ask);
  auto const candidate =
      exchange.call(Arm::candidate, limit, fmt::format("running ModelNew.forward (trial {})", trial));
  if (!candidate) return fail(candidate.error());
  std::optional<DrawAhead> ahead;
  if (trial < options.trials) ahead.emplace(exchange, next, 1);
  return check_candidate(exchange, *eager, *candidate, !*kept, options.tolerance, trial, correctness);
}

}  // namespace

void note_check(Correctness& correctness, const OutputCheck& check, int trial) {
  for (auto const& [dtype, tolerance] : check.tolerances) correctness.tolerances[dtype] = tolerance;
  correctness.worst_rms_scaled = std::max(correctness.worst_rms_scaled, check.worst_rms_scaled);
  if (check.worst && (!correctness.worst || check.worst->absolute > correctness.worst->absolute)) {
    correctness.worst = check.worst;
    correctness.worst->trial = trial;
  }
  if (!check.ok && correctness.mismatch.empty()) {
    correctness.mismatch = check.sentence;
    correctness.first_mismatch = check.first_mismatch;
    if (correctness.first_mismatch) correctness.first_mismatch->trial = trial;
  }
}

Result<void> check_candidate(Exchange& exchange, const ArmCall& eager, const ArmCall& candidate, bool inputs_may_change,
                             const ToleranceOverride& tolerance, int trial, Correctness& correctness) {
  if (tolerance.off) return {};
  for (int k = 0; k < exchange.calls(); ++k) {
    auto const check =
        check_output(exchange.backend(), eager.outputs.at(static_cast<std::size_t>(k)), exchange.kept(Arm::eager, k),
                     candidate.outputs.at(static_cast<std::size_t>(k)), exchange.kept(Arm::candidate, k), tolerance);
    if (!check) return fail(check.error());
    note_check(correctness, *check, trial);
    if (!check->ok) return fail(Outcome::wrong, check->sentence);
  }
  if (inputs_may_change) return {};
  auto const unchanged = exchange.inputs_unchanged(Arm::candidate);
  if (!unchanged) return fail(unchanged.error());
  if (!*unchanged) {
    correctness.mismatch = "ModelNew.forward changed its inputs, which Model.forward leaves as they are";
    return fail(Outcome::wrong, correctness.mismatch, {"write results into tensors of your own"});
  }
  return {};
}

Result<void> verify(Exchange& exchange, const VerifyOptions& options, std::uint64_t seed, Correctness& correctness,
                    util::Progress& progress) {
  util::SplitMix64 seeds(seed);
  Result<void> first;
  std::uint64_t next = seeds();
  for (int trial = 1; trial <= options.trials; ++trial) {
    progress.step(fmt::format("checking: trial {} of {}", trial, options.trials));
    std::uint64_t const own = std::exchange(next, seeds());
    correctness.seeds.push_back(std::to_string(own));
    ++correctness.trials;
    auto const done = trial_once(exchange, options, own, next, trial, correctness);
    if (done) {
      ++correctness.passed;
      continue;
    }
    if (first) first = done;
    // After anything but a wrong value the worker is gone or in an unknown state.
    if (!options.keep_going || done.error().outcome != Outcome::wrong) break;
  }
  if (!first && first.error().outcome == Outcome::wrong) {
    Error error = first.error();
    error.message = fmt::format("trial {} of {}: {}",
                                correctness.first_mismatch ? correctness.first_mismatch->trial : correctness.passed + 1,
                                options.trials, error.message);
    return fail(std::move(error));
  }
  return first;
}

}  // namespace cuda_agent::judge
