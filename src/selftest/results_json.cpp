#include "selftest/results_json.hpp"

#include <string_view>
#include <utility>

#include "selftest/proof.hpp"
#include "selftest/summary.hpp"

namespace cuda_agent::selftest {

namespace {

using nlohmann::json;

std::string_view state_name(State state) {
  switch (state) {
    case State::as_expected:
      return "as_expected";
    case State::wrong:
      return "wrong";
    case State::not_judged:
      return "not_judged";
    case State::left_out:
      break;
  }
  return "left_out";
}

json speedup_of(const Answer& answer) { return answer.speedup ? json(answer.speedup->estimate) : json(); }

std::string_view state_name(Proof::State state) {
  switch (state) {
    case Proof::State::proven:
      return "proven";
    case Proof::State::not_proven:
      return "not_proven";
    case Proof::State::not_switchable:
      return "not_switchable";
    case Proof::State::not_tried:
      break;
  }
  return "not_tried";
}

json to_json(const Case& one, const Proof& proof) {
  if (proof.state == Proof::State::not_tried) return {};
  json object{{"state", state_name(proof.state)},
              {"not_switchable", not_switchable(one)},
              {"rules", proof.policy ? json(proof.policy->rules) : json()},
              {"through", nullptr},
              {"problems", proof.problems},
              {"seconds", proof.seconds}};
  if (proof.through) {
    object["through"] = {{"switched_off", switched_off(one, {Part::Kind::through})},
                         {"outcome", proof.through->outcome},
                         {"exit_code", proof.through->exit_code},
                         {"message", proof.through->message},
                         {"gain", proof.gain ? json(*proof.gain) : json()}};
  }
  return object;
}

json to_json(const CaseResult& result) {
  auto const& one = result.one;
  auto const judged = result.state != State::left_out;
  json const none;
  return {{"name", one.name},
          {"what", one.what},
          {"row", one.row},
          {"layer", one.layer.empty() ? none : json(one.layer)},
          {"also", one.also},
          {"with_policy", one.with_policy()},
          {"expected", {{"outcomes", one.expect.outcomes}, {"exit_codes", one.expect.exit_codes}}},
          {"state", state_name(result.state)},
          {"outcome", result.answer.outcome.empty() ? none : json(result.answer.outcome)},
          {"exit_code", judged ? json(result.answer.exit_code) : none},
          {"message", judged ? json(result.answer.message) : none},
          {"rules", result.answer.rules},
          {"reward", result.answer.reward ? json(*result.answer.reward) : none},
          {"speedup", speedup_of(result.answer)},
          {"problems", result.problems},
          {"proof", to_json(one, result.proof)},
          {"left_out", judged ? none : json(result.left_out)},
          {"seconds", judged ? json(result.seconds) : none},
          {"workspace", result.kept.empty() ? none : json(result.kept.string())}};
}

json proofs_as_json(const Counts& counts) {
  auto const message = proofs_in_words(counts);
  if (message.empty()) return {};
  return {{"message", message},
          {"proven", counts.proven},
          {"not_proven", counts.not_proven},
          {"not_switchable", counts.not_switchable}};
}

}  // namespace

json as_json(const std::vector<CaseResult>& results) {
  auto const counts = count(results);
  auto cases = json::array();
  for (auto const& result : results) cases.push_back(to_json(result));
  return {{"message", in_words(counts)},
          {"counts",
           {{"exploits", counts.exploits},
            {"caught", counts.caught},
            {"honest", counts.honest},
            {"passed", counts.passed},
            {"not_judged", counts.not_judged},
            {"need_gpu", counts.need_gpu},
            {"known_gaps", counts.known_gaps}}},
          {"proofs", proofs_as_json(counts)},
          {"cases", std::move(cases)}};
}

}  // namespace cuda_agent::selftest
