#include "selftest/expectation.hpp"

#include <algorithm>
#include <regex>

#include <spdlog/fmt/fmt.h>

#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace {

template <typename Value>
bool among(const std::vector<Value>& values, const Value& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

nlohmann::json in_json(std::optional<double> reward) { return reward ? nlohmann::json(*reward) : nlohmann::json(); }

/// What is asked beyond outcome and exit code.
void check_details(const Expectation& expect, const Answer& answer, std::vector<std::string>& problems) {
  if (expect.rule && !among(answer.rules, *expect.rule)) {
    problems.push_back(fmt::format("not refused by {}, but by {}", *expect.rule,
                                   answer.rules.empty() ? "no rule" : util::join(answer.rules, ", ")));
  }
  if (expect.rule && answer.reward != -1.0) {
    problems.push_back(fmt::format("reward {} for a broken rule, expected -1", in_json(answer.reward).dump()));
  }
  if (expect.message && !std::regex_search(answer.message, std::regex(*expect.message))) {
    problems.push_back(fmt::format("the message does not match '{}': {}", *expect.message, answer.message));
  }
  if (expect.reward && in_json(answer.reward) != *expect.reward) {
    problems.push_back(fmt::format("reward {}, expected {}", in_json(answer.reward).dump(), expect.reward->dump()));
  }
  if (expect.reward && expect.reward->is_null() && answer.reward_reason.find("--policy none") != std::string::npos) {
    problems.emplace_back("there is no reward since the policy is off, which hides why there should be none");
  }
}

}  // namespace

std::vector<std::string> unexpected(const Case& one, const Answer& answer) {
  std::vector<std::string> problems;
  if (!among(one.expect.outcomes, answer.outcome) || !among(one.expect.exit_codes, answer.exit_code)) {
    problems.push_back(
        fmt::format("got {} (exit code {}), expected {}", answer.outcome, answer.exit_code, in_words(one.expect)));
  } else {
    check_details(one.expect, answer, problems);
  }
  return problems;
}

std::string in_words(const Expectation& expect) {
  std::vector<std::string> codes;
  codes.reserve(expect.exit_codes.size());
  for (int const code : expect.exit_codes) codes.push_back(std::to_string(code));
  return fmt::format("{} (exit code {})", util::join(expect.outcomes, " or "), util::join(codes, " or "));
}

}  // namespace cuda_agent::selftest
