#include "selftest/proof.hpp"

#include <spdlog/fmt/fmt.h>

#include "selftest/layer.hpp"
#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace {

constexpr const char* the_policy = "policy";

std::string in_words(const Answer& answer) {
  return fmt::format("{} (exit code {}), {}", answer.outcome, answer.exit_code, answer.message);
}

bool passed(const Answer& answer) {
  return answer.outcome == to_string(Outcome::pass) && answer.exit_code == exit_code(Outcome::pass);
}

/// What the policy says shows in the rules: it looks at a candidate that something else catches, too.
std::vector<std::string> wrong_about_policy(const Case& one, const Answer& answer) {
  auto const refused = !answer.rules.empty();
  if (refused == one.policy_refuses()) return {};
  if (!refused) return {"'also_caught_by' names the policy, which does not refuse it: " + in_words(answer)};
  return {fmt::format("the policy refuses it as well ({}), and 'also_caught_by' does not say so",
                      util::join(answer.rules, ", "))};
}

bool can_stand_alone(const std::string& layer, std::vector<std::string> layers) {
  std::erase(layers, layer);
  return switches_of(layers).missing.empty();
}

}  // namespace

std::vector<std::string> switched_off(const Case& one, const Part& part) {
  std::vector<std::string> layers;
  if (part.kind != Part::Kind::caught) layers = one.layers();
  if (!one.with_policy()) layers.emplace_back(the_policy);
  if (part.kind == Part::Kind::alone) std::erase(layers, part.layer);
  return switches_of(layers).arguments;
}

std::vector<std::string> not_switchable(const Case& one) { return switches_of(one.layers()).missing; }

std::vector<Part> parts_of_proof(const Case& one) {
  if (one.kind == Kind::honest) return {};
  auto layers = one.layers();
  std::erase(layers, the_policy);
  std::vector<Part> parts;
  // One layer without the policy is what `caught` has shown.
  for (auto const& layer : layers) {
    if (layers.size() > 1 && can_stand_alone(layer, layers)) parts.push_back({Part::Kind::alone, layer});
  }
  if (!layers.empty()) parts.push_back({Part::Kind::alone, the_policy});
  if (not_switchable(one).empty()) parts.push_back({Part::Kind::through});
  return parts;
}

std::vector<std::string> disproved(const Case& one, const Part& part, const Answer& answer) {
  if (part.kind == Part::Kind::alone) {
    if (part.layer == the_policy) return wrong_about_policy(one, answer);
    if (!passed(answer) || one.expect.most_speedup) return {};
    return {fmt::format("{} does not catch it by itself: {}", part.layer, in_words(answer))};
  }
  if (passed(answer)) return {};
  return {fmt::format("something else than {} catches it: with {} it is still {}", util::join(one.layers(), ", "),
                      util::join(switched_off(one, part), " "), in_words(answer))};
}

}  // namespace cuda_agent::selftest
