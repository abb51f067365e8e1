#include "selftest/table.hpp"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "selftest/proof.hpp"
#include "selftest/summary.hpp"
#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace {

constexpr std::size_t widest_cell = 56;

/// At most `widest_cell` characters. Cut at a byte: what the cases say is ASCII.
std::string shortened(const std::string& text) {
  return text.size() <= widest_cell ? text : text.substr(0, widest_cell - 3) + "...";
}

std::string short_form(const Answer& answer) {
  return fmt::format("{} ({})", answer.outcome.empty() ? "no verdict" : answer.outcome, answer.exit_code);
}

std::string got(const CaseResult& result) {
  return result.state == State::left_out ? "left out" : short_form(result.answer);
}

/// What became of it once its layers were switched off.
std::string with_layers_off(const CaseResult& result) {
  auto const& one = result.one;
  switch (result.proof.state) {
    case Proof::State::not_tried:
      return "-";
    case Proof::State::not_switchable:
      return fmt::format("cannot be switched off: {}", util::join(not_switchable(one), ", "));
    case Proof::State::proven:
    case Proof::State::not_proven:
      break;
  }
  auto text = util::join(switched_off(one, {Part::Kind::through}), " ");
  if (!result.proof.through) return text;
  text += ": " + short_form(*result.proof.through);
  if (result.proof.gain) text += fmt::format(", {:.1f}x", *result.proof.gain);
  return text;
}

std::string mark(const CaseResult& result) {
  switch (result.state) {
    case State::as_expected:
      return result.proof.state == Proof::State::not_proven ? "NOT PROVEN" : "ok";
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

/// Which of the results are not as expected, one line for each thing.
std::string what_is_wrong(const std::vector<CaseResult>& results) {
  std::string text;
  for (auto const& result : results) {
    if (result.state == State::not_judged) {
      text += fmt::format("{} could not be judged: {}\n", result.one.name, result.answer.message);
      for (auto const& hint : result.answer.hints) text += fmt::format("  {}\n", hint);
    }
    if (result.state == State::not_judged) continue;
    for (auto const& problem : result.problems) text += fmt::format("{}: {}\n", result.one.name, problem);
    for (auto const& problem : result.proof.problems) text += fmt::format("{}: {}\n", result.one.name, problem);
  }
  return text;
}

bool is_fine(const CaseResult& result) {
  return result.state == State::as_expected && result.proof.state != Proof::State::not_proven;
}

/// The results of one case, which was judged more than once with --repeat; one that is not fine speaks for all.
struct Row {
  const CaseResult* shown = nullptr;
  int times = 0;
  int fine = 0;
};

std::vector<Row> by_case(const std::vector<CaseResult>& results) {
  std::vector<Row> rows;
  for (auto const& result : results) {
    auto found =
        std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.shown->one.name == result.one.name; });
    if (found == rows.end()) found = rows.insert(rows.end(), Row{&result});
    ++found->times;
    found->fine += is_fine(result) ? 1 : 0;
    if (!is_fine(result) && is_fine(*found->shown)) found->shown = &result;
  }
  return rows;
}

std::vector<std::string> cells_of(const Row& shown, bool proofs) {
  auto const& result = *shown.shown;
  auto const& one = result.one;
  auto answer = got(result);
  if (shown.times > 1) answer += fmt::format("; {} of {} ok", shown.fine, shown.times);
  std::vector<std::string> row{mark(result),  one.name, shortened(one.what), one.layer.empty() ? "-" : one.layer,
                               expected(one), answer};
  if (proofs) row.push_back(with_layers_off(result));
  auto const seconds = result.seconds + result.proof.seconds;
  row.push_back(result.state == State::left_out ? "-" : fmt::format("{:.1f}", seconds));
  return row;
}

std::vector<std::string> head_of_rows(bool proofs) {
  std::vector<std::string> row{"", "case", "what it does", "layer", "expected", "got"};
  if (proofs) row.emplace_back("with its layers switched off");
  row.emplace_back("s");
  return row;
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

}  // namespace

std::string as_table(const std::vector<CaseResult>& results, bool verbose) {
  auto const counts = count(results);
  auto const proofs = proofs_in_words(counts);
  auto const rows = by_case(results);
  std::vector<std::vector<std::string>> cells{head_of_rows(!proofs.empty())};
  for (auto const& row : rows) cells.push_back(cells_of(row, !proofs.empty()));
  auto const lines = util::split_lines(aligned(cells));
  std::string text = lines.front() + "\n";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].shown->state == State::left_out && !verbose) continue;
    text += lines[i + 1] + "\n";
    if (verbose) text += below_row(*rows[i].shown);
  }
  for (auto const& result : results) {
    if (!result.kept.empty()) text += fmt::format("{} is kept in {}\n", result.one.name, result.kept.string());
  }
  text += what_is_wrong(results) + in_words(counts) + "\n";
  return proofs.empty() ? text : text + proofs + "\n";
}

}  // namespace cuda_agent::selftest
