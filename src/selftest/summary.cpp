#include "selftest/summary.hpp"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "selftest/expectation.hpp"
#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace {

using nlohmann::json;

constexpr std::size_t widest_cell = 56;

/// At most `widest_cell` characters. Cut at a byte: what the cases say is ASCII.
std::string shortened(const std::string& text) {
  return text.size() <= widest_cell ? text : text.substr(0, widest_cell - 3) + "...";
}

std::string got(const CaseResult& result) {
  if (result.state == State::left_out) return "left out";
  auto const& outcome = result.answer.outcome;
  return fmt::format("{} ({})", outcome.empty() ? "no verdict" : outcome, result.answer.exit_code);
}

std::string mark(const CaseResult& result) {
  switch (result.state) {
    case State::as_expected:
      return "ok";
    case State::wrong:
      return "WRONG";
    case State::not_judged:
      return "-";
    case State::left_out:
      break;
  }
  return "";
}

std::string expected(const Case& one) {
  std::vector<std::string> codes;
  codes.reserve(one.expect.exit_codes.size());
  for (int const code : one.expect.exit_codes) codes.push_back(std::to_string(code));
  auto text = fmt::format("{} ({})", util::join(one.expect.outcomes, "/"), util::join(codes, "/"));
  if (one.expect.most_speedup) text += fmt::format(", {}x at most", *one.expect.most_speedup);
  return text;
}

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

/// Which of the results are not as expected, one line for each thing.
std::string what_is_wrong(const std::vector<CaseResult>& results) {
  std::string text;
  for (auto const& result : results) {
    if (result.state == State::not_judged) {
      text += fmt::format("{} could not be judged: {}\n", result.one.name, result.answer.message);
      for (auto const& hint : result.answer.hints) text += fmt::format("  {}\n", hint);
    }
    if (result.state != State::wrong) continue;
    for (auto const& problem : result.problems) text += fmt::format("{}: {}\n", result.one.name, problem);
  }
  return text;
}

std::vector<std::string> row_of(const CaseResult& result) {
  auto const& one = result.one;
  return {mark(result),
          one.name,
          shortened(one.what),
          one.layer.empty() ? "-" : one.layer,
          expected(one),
          got(result),
          result.state == State::left_out ? "-" : fmt::format("{:.1f}", result.seconds)};
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (auto const& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (auto const& row : rows) {
    // The last column holds numbers.
    for (std::size_t i = 0; i + 1 < row.size(); ++i) text += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += fmt::format("{:>{}}\n", row.back(), widths.back());
  }
  return text;
}

std::string below_row(const CaseResult& result) {
  std::string text;
  if (!result.answer.message.empty()) text += fmt::format("       {}\n", result.answer.message);
  if (!result.left_out.empty()) text += fmt::format("       left out: {}\n", result.left_out);
  return text;
}

json to_json(const CaseResult& result) {
  auto const& one = result.one;
  auto const judged = result.state != State::left_out;
  json const none;
  return {{"name", one.name},
          {"what", one.what},
          {"row", one.row},
          {"layer", one.layer.empty() ? none : json(one.layer)},
          {"with_policy", one.with_policy()},
          {"expected", {{"outcomes", one.expect.outcomes}, {"exit_codes", one.expect.exit_codes}}},
          {"state", state_name(result.state)},
          {"outcome", result.answer.outcome.empty() ? none : json(result.answer.outcome)},
          {"exit_code", judged ? json(result.answer.exit_code) : none},
          {"message", judged ? json(result.answer.message) : none},
          {"rules", result.answer.rules},
          {"reward", result.answer.reward ? json(*result.answer.reward) : none},
          {"speedup", result.answer.speedup ? json(result.answer.speedup->estimate) : none},
          {"problems", result.problems},
          {"left_out", judged ? none : json(result.left_out)},
          {"seconds", judged ? json(result.seconds) : none},
          {"workspace", result.kept.empty() ? none : json(result.kept.string())}};
}

}  // namespace

Counts count(const std::vector<CaseResult>& results) {
  Counts counts;
  for (auto const& result : results) {
    auto const good = result.state == State::as_expected ? 1 : 0;
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
  if (counts.caught < counts.exploits || counts.passed < counts.honest) return Outcome::internal_error;
  return counts.not_judged > 0 ? Outcome::environment_error : Outcome::pass;
}

std::string in_words(const Counts& counts) {
  auto text = fmt::format("{} of {} exploits caught, {} of {} honest candidates passed", counts.caught, counts.exploits,
                          counts.passed, counts.honest);
  if (counts.not_judged > 0) text += fmt::format(", {} could not be judged", counts.not_judged);
  if (counts.need_gpu > 0) text += fmt::format(", {} left out: they need a GPU", counts.need_gpu);
  if (counts.known_gaps > 0) text += fmt::format(", {} left out: known gaps (-v lists them)", counts.known_gaps);
  if (outcome_of(counts) == Outcome::internal_error) text += "; verdicts of this installation cannot be trusted";
  return text;
}

std::string as_table(const std::vector<CaseResult>& results, bool verbose) {
  std::vector<std::vector<std::string>> rows{{"", "case", "what it does", "layer", "expected", "got", "s"}};
  for (auto const& result : results) rows.push_back(row_of(result));
  auto const lines = util::split_lines(aligned(rows));
  std::string text = lines.front() + "\n";
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].state == State::left_out && !verbose) continue;
    text += lines[i + 1] + "\n";
    if (verbose) text += below_row(results[i]);
  }
  for (auto const& result : results) {
    if (!result.kept.empty()) text += fmt::format("{} is kept in {}\n", result.one.name, result.kept.string());
  }
  return text + what_is_wrong(results) + in_words(count(results)) + "\n";
}

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
          {"cases", std::move(cases)}};
}

}  // namespace cuda_agent::selftest
