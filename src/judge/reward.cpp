#include "judge/reward.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <spdlog/fmt/fmt.h>

namespace cuda_agent::judge {
namespace {

bool is_correct(Outcome outcome) { return outcome == Outcome::pass || outcome == Outcome::slow; }

const TaskFinding* disqualifying(const std::vector<TaskFinding>& findings) {
  const auto found = std::find_if(findings.begin(), findings.end(), [](const TaskFinding& finding) {
    return finding.kind == "degenerate" || finding.kind == "nondeterministic";
  });
  return found == findings.end() ? nullptr : &*found;
}

double deciding(const Interval& ratio, RewardOn on) { return on == RewardOn::interval ? ratio.low : ratio.estimate; }

bool is_faster(const std::optional<Interval>& ratio, RewardOn on) {
  return ratio.has_value() && deciding(*ratio, on) > faster_than;
}

/// "1.31× eager (low end 1.28)". Four decimals near the bar, where two would hide on which side of the bar it is.
std::string describe(const Interval& ratio, std::string_view baseline, RewardOn on) {
  const bool close = deciding(ratio, on) > 1.04 && deciding(ratio, on) < 1.07;
  const int digits = close ? 4 : 2;
  return on == RewardOn::interval
             ? fmt::format("{:.2f}× {} (low end {:.{}f})", ratio.estimate, baseline, ratio.low, digits)
             : fmt::format("{:.{}f}× {} (estimate)", ratio.estimate, digits, baseline);
}

std::string explain(const RewardFacts& facts) {
  const auto& eager = facts.versus_eager;
  const auto& compiled = facts.versus_compiled;
  const std::string bar = fmt::format("{:.4f}", faster_than);
  const bool beats_eager = is_faster(eager, facts.on);
  const bool beats_compiled = is_faster(compiled, facts.on);
  if (eager && compiled) {
    const std::string both =
        describe(*eager, "eager", facts.on) + " and " + describe(*compiled, "compiled", facts.on) + ": ";
    if (beats_eager && beats_compiled) {
      return both + "both above " + bar;
    }
    if (beats_eager) {
      return both + "only the first above " + bar;
    }
    return both + (beats_compiled ? "only the second above " + bar + ", and eager has to be beaten first"
                                  : "neither above " + bar);
  }
  if (eager) {
    return describe(*eager, "eager", facts.on) + (beats_eager ? ": above " : ": not above ") + bar +
           (beats_eager ? "; compiled was not timed, so 3 could not be shown" : "");
  }
  return describe(*compiled, "compiled", facts.on) + "; eager was not timed, so 2 and 3 could not be shown";
}

int milestone(const RewardFacts& facts) {
  if (!is_faster(facts.versus_eager, facts.on)) {
    return 1;
  }
  return is_faster(facts.versus_compiled, facts.on) ? 3 : 2;
}

Reward none(Reward reward, std::string reason) {
  reward.value = std::nullopt;
  reward.reason = std::move(reason);
  return reward;
}

}  // namespace

Reward provisional_reward(const RewardFacts& facts) {
  Reward reward;
  reward.final = false;
  reward.on = facts.on == RewardOn::interval ? "interval" : "median";
  if (!is_correct(facts.outcome) && facts.fault != Fault::candidate) {
    if (facts.outcome == Outcome::interrupted) {
      return none(reward, "interrupted before there was an answer");
    }
    return none(reward,
                fmt::format("{}: not the candidate's fault ({})", to_string(facts.outcome), to_string(facts.fault)));
  }
  if (facts.seeds_replayed) {
    return none(reward, "the seeds were replayed (--seed), so the candidate may have known its inputs");
  }
  if (facts.policy_off) {
    return none(reward, "the rules were not enforced (--policy none), so torch may have done the work");
  }
  if (facts.layer_off) {
    return none(reward, "a layer of protection was left out (--without)");
  }
  if (const TaskFinding* finding = disqualifying(facts.task_findings); finding != nullptr) {
    return none(reward, fmt::format("the task is {}: {}", finding->kind, finding->message));
  }
  if (!is_correct(facts.outcome)) {
    reward.value = -1;
    reward.reason = fmt::format("{}: the candidate's fault", to_string(facts.outcome));
    return reward;
  }
  if (!facts.versus_eager && !facts.versus_compiled) {
    return none(reward, "no speed was measured, and a reward for a correct candidate depends on it");
  }
  reward.value = milestone(facts);
  reward.reason = explain(facts);
  if (facts.precision && facts.precision->lower && *reward.value > 1) {
    reward.value = 1;
    reward.reason +=
        fmt::format("; 1 at the most, since it computes with less precision ({}; eager {}): --precision any allows it",
                    facts.precision->candidate_class, facts.precision->eager_class);
  }
  return reward;
}

}  // namespace cuda_agent::judge
