#include "selftest/summary.hpp"

#include <spdlog/fmt/fmt.h>

#include "selftest/proof.hpp"
#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace {

void count_proof(const CaseResult& result, Counts& counts) {
  switch (result.proof.state) {
    case Proof::State::proven:
      ++counts.proven;
      break;
    case Proof::State::not_proven:
      ++counts.not_proven;
      break;
    case Proof::State::not_switchable:
      ++counts.not_switchable[not_switchable(result.one).front()];
      break;
    case Proof::State::not_tried:
      break;
  }
}

bool any_proof(const Counts& counts) { return counts.proven + counts.not_proven > 0 || !counts.not_switchable.empty(); }

}  // namespace

Counts count(const std::vector<CaseResult>& results) {
  Counts counts;
  for (auto const& result : results) {
    auto const good = result.state == State::as_expected ? 1 : 0;
    count_proof(result, counts);
    if (result.state == State::left_out) {
      ++(result.one.known_gap() ? counts.known_gaps : counts.need_gpu);
    } else if (result.state == State::not_judged) {
      ++counts.not_judged;
    } else if (result.one.kind == Kind::exploit) {
      ++counts.exploits;
      counts.caught += good;
    } else {
      ++counts.honest;
      counts.passed += good;
    }
  }
  return counts;
}

Outcome outcome_of(const Counts& counts) {
  auto const as_expected = counts.caught == counts.exploits && counts.passed == counts.honest;
  if (!as_expected || counts.not_proven > 0) return Outcome::internal_error;
  return counts.not_judged > 0 ? Outcome::environment_error : Outcome::pass;
}

std::string in_words(const Counts& counts) {
  auto text = fmt::format("{} of {} exploits caught, {} of {} honest candidates passed", counts.caught, counts.exploits,
                          counts.passed, counts.honest);
  if (counts.not_judged > 0) text += fmt::format(", {} could not be judged", counts.not_judged);
  if (counts.need_gpu > 0) text += fmt::format(", {} left out: they need a GPU", counts.need_gpu);
  if (counts.known_gaps > 0) text += fmt::format(", {} left out: known gaps (-v lists them)", counts.known_gaps);
  if (counts.caught < counts.exploits || counts.passed < counts.honest) {
    text += "; verdicts of this installation cannot be trusted";
  }
  return text;
}

std::string proofs_in_words(const Counts& counts) {
  if (!any_proof(counts)) return {};
  auto text = fmt::format("{} of {} exploits get through once the layers that catch them are switched off",
                          counts.proven, counts.proven + counts.not_proven);
  if (counts.not_switchable.empty()) return text;
  int all = 0;
  std::vector<std::string> layers;
  for (auto const& [layer, cases] : counts.not_switchable) {
    all += cases;
    layers.push_back(fmt::format("{} {}", layer, cases));
  }
  return text + fmt::format("; of {} the layer cannot be switched off: {}", all, util::join(layers, ", "));
}

}  // namespace cuda_agent::selftest
