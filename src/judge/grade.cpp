#include "judge/grade.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include <spdlog/fmt/fmt.h>

#include "judge/reward.hpp"
#include "judge/statistics.hpp"

namespace cuda_agent::judge {
namespace {

bool passed_checks(const Verdict& ask) { return is_right(ask.outcome); }

std::vector<GradeRatio> combined_ratios(const std::vector<Verdict>& asks) {
  std::map<std::string, std::vector<Interval>> by_baseline;
  for (Verdict const& ask : asks) {
    for (RatioReport const& one : ask.speed->ratios) by_baseline[one.baseline].push_back(one.ratio);
  }
  std::vector<GradeRatio> combined;
  for (char const* const baseline : {"eager", "compiled"}) {
    auto const found = by_baseline.find(baseline);
    // A baseline that was left out of one ask has not been beaten in it.
    if (found == by_baseline.end() || found->second.size() != asks.size()) continue;
    std::vector<double> estimates;
    GradeRatio one;
    one.baseline = baseline;
    one.ratio = found->second.front();
    for (Interval const& ratio : found->second) {
      estimates.push_back(ratio.estimate);
      one.ratio.low = std::min(one.ratio.low, ratio.low);
      one.ratio.high = std::max(one.ratio.high, ratio.high);
    }
    one.ratio.estimate = median(estimates);
    auto const [least, most] = std::minmax_element(estimates.begin(), estimates.end());
    one.spread = *most / *least - 1;
    combined.push_back(std::move(one));
  }
  return combined;
}

void keep_common_protections(Verdict& verdict, const std::vector<Verdict>& asks) {
  for (Protection& own : verdict.protections) {
    for (Verdict const& ask : asks) {
      auto const other = std::find_if(ask.protections.begin(), ask.protections.end(),
                                      [&own](const Protection& one) { return one.name == own.name; });
      if (other == ask.protections.end() || other->in_force) continue;
      own = *other;
    }
  }
}

RewardFacts facts_of(const Verdict& verdict) {
  RewardFacts facts;
  facts.outcome = verdict.outcome;
  facts.fault = verdict.fault;
  facts.task_findings = verdict.task_findings;
  for (GradeRun const& run : verdict.grade->runs) {
    if (run.correctness && run.correctness->precision && run.correctness->precision->lower) {
      facts.precision = run.correctness->precision;
    }
  }
  for (GradeRatio const& one : verdict.grade->ratios) {
    (one.baseline == "eager" ? facts.versus_eager : facts.versus_compiled) = one.ratio;
  }
  return facts;
}

std::string praise(const Grade& grade) {
  std::string text = fmt::format("{} of {} asks correct", grade.runs.size(), grade.runs.size());
  for (GradeRatio const& one : grade.ratios) {
    text += fmt::format(", {:.2f}x {} ({:.2f} at least)", one.ratio.estimate, one.baseline, one.ratio.low);
  }
  return text;
}

}  // namespace

bool is_right(Outcome outcome) { return outcome == Outcome::pass || outcome == Outcome::slow; }

Verdict combine_grade(const std::vector<Verdict>& asks) {
  if (asks.empty()) throw std::invalid_argument("a grade needs at least one ask");
  bool const all_right = std::all_of(asks.begin(), asks.end(), passed_checks);
  Verdict verdict = all_right ? asks.front() : asks.back();
  verdict.command = "grade";
  verdict.time = asks.front().time;
  verdict.grade.emplace();
  for (Verdict const& ask : asks) {
    verdict.grade->runs.push_back({ask.seed, ask.outcome, ask.message, ask.reward.value, ask.correctness, ask.speed});
    for (auto const& [stage, seconds] : ask.timings) {
      if (&ask != &(all_right ? asks.front() : asks.back())) verdict.timings[stage] += seconds;
    }
    if (&ask != &(all_right ? asks.front() : asks.back())) {
      verdict.timeline.insert(verdict.timeline.end(), ask.timeline.begin(), ask.timeline.end());
    }
    for (TaskFinding const& finding : ask.task_findings) {
      bool const known = std::any_of(verdict.task_findings.begin(), verdict.task_findings.end(),
                                     [&](const TaskFinding& one) { return one.kind == finding.kind; });
      if (!known) verdict.task_findings.push_back(finding);
    }
  }
  // Each ask has its own, under grade.runs.
  for (char const* const part : {"/correctness", "/speed", "/seed"}) {
    verdict.not_measured[part] = "each ask of a grade has its own: grade.runs";
  }
  verdict.correctness.reset();
  verdict.speed.reset();
  verdict.seed.clear();
  keep_common_protections(verdict, asks);
  if (all_right) {
    verdict.grade->ratios = combined_ratios(asks);
    verdict.message = praise(*verdict.grade);
    for (Verdict const& ask : asks) {
      if (ask.outcome != Outcome::slow) continue;
      verdict.outcome = ask.outcome;
      verdict.fault = ask.fault;
      verdict.message = ask.message;
    }
  } else {
    verdict.message = fmt::format("ask {} of {}: {}", asks.size(), grade_runs, verdict.message);
  }
  verdict.reward = provisional_reward(facts_of(verdict));
  verdict.reward.final = verdict.reward.value.has_value();
  bool const moving = std::any_of(verdict.grade->ratios.begin(), verdict.grade->ratios.end(),
                                  [](const GradeRatio& one) { return one.spread > steady; });
  if (moving && verdict.reward.value) {
    verdict.reward.reason += fmt::format("; unstable: the asks differ by more than {:g} %", steady * 100);
  }
  return verdict;
}

}  // namespace cuda_agent::judge
