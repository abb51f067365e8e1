#include "selftest/answer.hpp"

#include <cctype>
#include <set>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "util/json.hpp"
#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace {

using nlohmann::json;

constexpr std::size_t longest_answer = std::size_t{64} << 20;

tl::unexpected<Error> no_verdict(std::string_view why, const std::string& output) {
  return fail(Outcome::internal_error, fmt::format("{}: {}", why, util::escape_untrusted(util::trim(output), 400)));
}

/// Without the lines in which the judge itself warns of something on standard error.
std::vector<std::string> result_lines(const std::string& output) {
  auto lines = util::split_lines(output);
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("cuda-agent: "); });
  return lines;
}

std::string in_capitals(std::string_view word) {
  std::string capitals(word);
  for (auto& letter : capitals) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return capitals;
}

/// The report for people begins with the outcome in capitals.
Result<Answer> from_report(const std::string& output) {
  auto const lines = result_lines(output);
  if (lines.empty()) return no_verdict("no report", output);
  Answer answer;
  answer.message = util::escape_untrusted(lines.front(), 1024);
  for (auto const outcome : {Outcome::pass, Outcome::wrong, Outcome::crash, Outcome::timeout}) {
    if (lines.front().starts_with(in_capitals(to_string(outcome)))) answer.outcome = to_string(outcome);
  }
  if (answer.outcome.empty()) return no_verdict("the report begins with no outcome", output);
  return answer;
}

std::vector<std::string> broken_rules(const json& verdict) {
  std::set<std::string> rules;
  auto const policy = verdict.value("policy", json());
  if (policy.is_null()) return {};
  for (auto const& finding : policy.at("findings")) rules.insert(finding.at("rule").get<std::string>());
  return {rules.begin(), rules.end()};
}

std::optional<Speedup> eager_ratio(const json& verdict) {
  auto const speed = verdict.value("speed", json());
  if (speed.is_null()) return std::nullopt;
  for (auto const& one : speed.at("ratios")) {
    if (one.at("baseline") != "eager") continue;
    auto const& ratio = one.at("ratio");
    return Speedup{ratio.at("low").get<double>(), ratio.at("estimate").get<double>()};
  }
  return std::nullopt;
}

Result<Answer> from_json(const std::string& output) {
  auto const lines = result_lines(output);
  if (lines.size() != 1) return no_verdict("not one line of JSON", output);
  auto const verdict = util::parse_json(lines.front(), {.bytes = longest_answer, .depth = 64});
  if (!verdict || !verdict->is_object()) return no_verdict("no object of JSON", output);
  Answer answer;
  try {
    answer.outcome = verdict->at("outcome").get<std::string>();
    answer.message = verdict->at("message").get<std::string>();
    answer.hints = verdict->value("hints", std::vector<std::string>());
    auto const& reward = verdict->at("reward");
    if (!reward.at("value").is_null()) answer.reward = reward.at("value").get<double>();
    answer.reward_reason = reward.value("reason", std::string());
    answer.rules = broken_rules(*verdict);
    answer.speedup = eager_ratio(*verdict);
  } catch (const json::exception& error) {
    return no_verdict(fmt::format("a verdict that lacks something ({})", error.what()), output);
  }
  return answer;
}

}  // namespace

Result<Answer> read_answer(const Case& one, int exit_code, const std::string& output) {
  if (output.find_first_of("\x1b\x07") != std::string::npos) {
    return no_verdict("a terminal's escape code reached the output", output);
  }
  auto answer = one.text ? from_report(output) : from_json(output);
  if (answer) answer->exit_code = exit_code;
  return answer;
}

}  // namespace cuda_agent::selftest
