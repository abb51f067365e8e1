#include "judge/closing.hpp"

#include <algorithm>
#include <string>

#include <spdlog/fmt/fmt.h>

#include "judge/reward.hpp"

namespace cuda_agent::judge {

void note_pass(Verdict& verdict) {
  verdict.outcome = Outcome::pass;
  verdict.fault = Fault::none;
  std::string text;
  if (verdict.correctness && verdict.correctness->trials > 0) {
    text = fmt::format("{} of {} trials correct", verdict.correctness->passed, verdict.correctness->trials);
  }
  if (verdict.speed) {
    for (RatioReport const& one : verdict.speed->ratios) {
      text += fmt::format("{}{:.2f}x {}", text.empty() ? "" : ", ", one.ratio.estimate, one.baseline);
    }
  }
  if (text.empty() && verdict.build) {
    text = fmt::format("built {} objects for {}", verdict.build->objects.size(), verdict.build->architecture);
  }
  verdict.message = text;
}

void close_verdict(Verdict& verdict, const Options& options) {
  verdict.protections.push_back({"fresh_inputs", options.without != Layer::fresh_inputs,
                                 options.without == Layer::fresh_inputs
                                     ? "--without fresh-inputs: every call gets the same"
                                     : "inputs are drawn anew for every call, after the candidate is loaded"});
  if (options.without == Layer::comparison) {
    verdict.protections.push_back({"comparison", false, "--without comparison: results are not looked at"});
  }
  if (options.without == Layer::stopping) {
    verdict.protections.push_back(
        {"stopping", false, "--without stopping: the candidate's worker runs on while it is not called"});
  }
  verdict.protections.push_back(
      {"separate_processes", true, "the candidate's process never holds model.py or an expected result"});
  verdict.protections.push_back(
      {"policy", options.policy,
       options.policy ? "rules on model_new.py, an allow-list over what the built extension takes and offers"
                      : "--policy none: model_new.py and kernels/ may leave the work to torch"});
  if (!options.policy) verdict.policy.emplace(PolicyReport{false, {}});
  RewardFacts facts;
  facts.outcome = verdict.outcome;
  facts.fault = verdict.fault;
  facts.seeds_replayed = options.seed.has_value();
  facts.policy_off = !options.policy;
  facts.layer_off = options.without != Layer::none;
  if (verdict.correctness) facts.precision = verdict.correctness->precision;
  facts.task_findings = verdict.task_findings;
  if (verdict.speed) {
    for (RatioReport const& one : verdict.speed->ratios) {
      (one.baseline == "eager" ? facts.versus_eager : facts.versus_compiled) = one.ratio;
    }
  }
  verdict.reward = provisional_reward(facts);
  bool const weak = std::any_of(verdict.protections.begin(), verdict.protections.end(), [](const Protection& one) {
    return !one.in_force && one.name != "policy" && one.name != "other inputs";
  });
  if (weak && verdict.reward.value) verdict.reward.reason += "; under a weaker sandbox (protections)";
}

}  // namespace cuda_agent::judge
