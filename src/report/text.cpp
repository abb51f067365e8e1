#include "report/text.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <spdlog/fmt/fmt.h>

#include "report/gantt.hpp"
#include "report/numbers.hpp"
#include "util/text.hpp"

namespace cuda_agent::report {

namespace {

enum class Colour { plain, good, bad, warn, faint, strong };

std::string_view ansi(Colour colour) {
  switch (colour) {
    case Colour::plain:
      return "";
    case Colour::good:
      return "\033[1;32m";
    case Colour::bad:
      return "\033[1;31m";
    case Colour::warn:
      return "\033[33m";
    case Colour::faint:
      return "\033[2m";
    case Colour::strong:
      return "\033[1m";
  }
  return "";
}

/// Other people's words on one line of ours.
std::string safe(std::string_view text) {
  auto line = util::escape_untrusted(text, 4096);
  std::replace(line.begin(), line.end(), '\t', ' ');
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

std::string headline_word(Outcome outcome) {
  std::string word(to_string(outcome));
  for (auto& letter : word) letter = letter == '_' ? ' ' : static_cast<char>(std::toupper(letter));
  return word;
}

std::string place(const ElementDifference& difference) {
  std::vector<std::string> index;
  index.reserve(difference.index.size());
  for (auto const i : difference.index) index.push_back(std::to_string(i));
  return fmt::format("{}[{}]", safe(difference.output), util::join(index, ", "));
}

/// file:line:column, as far as it is known; a Diagnostic or a PolicyFinding.
template <typename Message>
std::string place_in_source(const Message& message) {
  auto text = safe(message.file);
  if (message.line > 0) text += fmt::format(":{}", message.line);
  if (message.line > 0 && message.column > 0) text += fmt::format(":{}", message.column);
  return text;
}

bool is_error(const Diagnostic& diagnostic) { return diagnostic.severity.find("error") != std::string::npos; }

/// Writes the sections in the order in which a person asks for them.
class TextReport {
 public:
  TextReport(const Verdict& verdict, const TextStyle& style) : m_verdict(verdict), m_style(style) {}

  std::string write() {
    headline();
    if (m_verdict.policy) policy(*m_verdict.policy);
    if (m_verdict.build) build(*m_verdict.build);
    if (m_verdict.correctness) check(*m_verdict.correctness);
    if (m_verdict.speed) speed(*m_verdict.speed);
    if (m_verdict.grade) grade(*m_verdict.grade);
    not_measured();
    reward();
    detail();
    candidate_output();
    warnings();
    if (m_style.verbose) everything_else();
    if (m_style.timings) m_out += render_gantt(m_verdict);
    m_label.clear();
    for (auto const& hint : m_verdict.hints) line("next", safe(hint));
    return std::move(m_out);
  }

 private:
  std::string coloured(Colour colour, std::string_view text) const {
    if (!m_style.colour || colour == Colour::plain) return std::string(text);
    return fmt::format("{}{}\033[0m", ansi(colour), text);
  }

  /// The label is given once for a run of lines that share it.
  void line(std::string_view label, std::string_view text, Colour colour = Colour::plain) {
    auto const shown = label == m_label ? std::string_view{} : label;
    m_label = label;
    m_out += fmt::format("  {} {}\n", coloured(Colour::faint, fmt::format("{:<8}", shown)), coloured(colour, text));
  }

  void headline() {
    auto const passed = m_verdict.outcome == Outcome::pass;
    auto const word = headline_word(m_verdict.outcome);
    m_out += coloured(passed ? Colour::good : Colour::bad, word);
    if (!m_verdict.command.empty()) m_out += fmt::format("  {} {}", m_verdict.command, safe(m_verdict.workspace));
    if (!passed) {
      m_out += coloured(Colour::faint, fmt::format("  fault: {}, exit code {}", to_string(m_verdict.fault),
                                                   exit_code(m_verdict.outcome)));
    }
    m_out += "\n";
    if (!m_verdict.message.empty()) m_out += fmt::format("  {}\n", coloured(Colour::strong, safe(m_verdict.message)));
  }

  void policy(const PolicyReport& policy) {
    std::size_t const most = m_style.verbose ? policy.findings.size() : 8;
    std::size_t shown = 0;
    for (auto const& finding : policy.findings) {
      if (shown++ == most) break;
      auto const where = place_in_source(finding);
      line("policy",
           fmt::format("{}{} [{}]", where.empty() ? "" : where + ": ", safe(finding.message), safe(finding.rule)),
           Colour::bad);
      if (!finding.source.empty()) line("policy", "  " + safe(finding.source));
      if (!finding.reached.empty()) line("policy", "  reached by " + safe(finding.reached), Colour::faint);
    }
    if (policy.findings.size() > most) {
      line("policy", fmt::format("and {} more: -v shows them", policy.findings.size() - most));
    }
  }

  void build(const BuildReport& build) {
    auto const cached = std::count_if(build.objects.begin(), build.objects.end(),
                                      [](const BuiltObject& object) { return object.cached; });
    auto const total = static_cast<std::int64_t>(build.objects.size());
    auto text = count_text(total, "object", "objects");
    if (cached > 0) text += cached == total ? ", all cached" : fmt::format(", {} cached", cached);
    if (!build.device.empty()) text += fmt::format(" · {} {}", build.device, safe(build.architecture));
    if (!build.architecture_from.empty() && build.device == "cuda") {
      text += fmt::format(" (from {})", safe(build.architecture_from));
    }
    text += fmt::format(" · {}", seconds_text(build.seconds));
    line("build", text);
    if (m_verdict.outcome == Outcome::pass && m_verdict.command == "compile" && !build.extension_path.empty()) {
      line("build", safe(build.extension_path));
    }
    kernels(build.kernels);
    diagnostics(build.objects);
  }

  void kernels(const std::vector<KernelResources>& kernels) {
    auto const all = m_style.verbose || m_verdict.command == "compile";
    for (auto const& kernel : kernels) {
      auto const spills = kernel.spill_stores + kernel.spill_loads;
      if (!all && spills == 0) continue;
      auto const name = safe(kernel.name);
      line("kernel",
           fmt::format("{}: {} registers, {} bytes shared, {}", name, kernel.registers, kernel.shared_memory,
                       spills == 0
                           ? "no spills"
                           : fmt::format("spills {} bytes stored, {} loaded", kernel.spill_stores, kernel.spill_loads)),
           spills == 0 ? Colour::plain : Colour::warn);
    }
  }

  void diagnostics(const std::vector<BuiltObject>& objects) {
    constexpr int k_most_errors = 6;
    int errors = 0;
    int others = 0;
    for (auto const& object : objects) {
      for (auto const& diagnostic : object.diagnostics) {
        auto const counts = is_error(diagnostic) ? ++errors : ++others;
        if (m_style.verbose || (is_error(diagnostic) && counts <= k_most_errors)) this->diagnostic(diagnostic);
      }
    }
    m_errors_shown = errors > 0;
    if (m_style.verbose) return;
    if (errors > k_most_errors) line("error", fmt::format("and {} more; -v shows them", errors - k_most_errors));
    if (others > 0) {
      line("build", fmt::format("{}; -v shows {}", count_text(others, "warning or note", "warnings and notes"),
                                others == 1 ? "it" : "them"));
    }
  }

  void diagnostic(const Diagnostic& diagnostic) {
    auto const label = is_error(diagnostic) ? "error" : diagnostic.severity;
    auto const where = place_in_source(diagnostic);
    line(safe(label), fmt::format("{}{}{}", where, where.empty() ? "" : ": ", safe(diagnostic.message)),
         is_error(diagnostic) ? Colour::bad : Colour::warn);
    source(diagnostic);
    m_label = "source";  // the next diagnostic repeats its label
  }

  void source(const Diagnostic& diagnostic) {
    if (!m_style.source_line || diagnostic.line <= 0) return;
    auto const text = m_style.source_line(diagnostic.file, diagnostic.line);
    if (!text) return;
    m_out += fmt::format("  {:>8} | {}\n", diagnostic.line, safe(*text));
    auto const column = static_cast<std::size_t>(std::max(diagnostic.column, 0));
    if (column == 0 || column > text->size() + 1) return;
    m_out += fmt::format("  {:>8} | {}^\n", "", std::string(column - 1, ' '));
  }

  void check(const Correctness& check) {
    // `profile` makes no trials of its own.
    bool const right = check.passed == check.trials && check.mismatch.empty();
    auto text = check.trials > 0 ? fmt::format("{} of {} correct", check.passed, check.trials)
                                 : std::string(right ? "every timed call is correct" : "a timed call is wrong");
    if (check.worst) {
      text += fmt::format(" · largest error {} at {}", error_text(check.worst->absolute), place(*check.worst));
    }
    if (check.timed_compared > 0) text += fmt::format(" · {} timed calls compared", check.timed_compared);
    line("check", text, right ? Colour::plain : Colour::bad);
    std::vector<std::string> tolerances;
    tolerances.reserve(check.tolerances.size());
    for (auto const& [dtype, tolerance] : check.tolerances) {
      tolerances.push_back(
          fmt::format("{} rtol {}, atol {}", dtype, error_text(tolerance.rtol), error_text(tolerance.atol)));
    }
    if (!tolerances.empty()) line("check", fmt::format("tolerance: {}", util::join(tolerances, "; ")), Colour::faint);
    if (check.precision) precision(*check.precision);
    bool const said = m_verdict.message.find(check.mismatch) != std::string::npos;
    if (!check.mismatch.empty() && !said) line("check", safe(check.mismatch));
    if (check.first_mismatch) mismatch("first", *check.first_mismatch);
    if (check.first_mismatch && check.worst) mismatch("largest", *check.worst);
  }

  void precision(const PrecisionReport& report) {
    auto text =
        fmt::format("precision: {}, error against float64 {} of the results' RMS; eager {}, {}", report.candidate_class,
                    error_text(report.candidate), report.eager_class, error_text(report.eager));
    if (report.lower) text += ": lower than --precision " + report.rule + " asks for";
    line("check", text, report.lower ? Colour::warn : Colour::faint);
  }

  void mismatch(std::string_view which, const ElementDifference& difference) {
    line("check", fmt::format("{} difference: {}, trial {}: expected {}, got {} (off by {})", which, place(difference),
                              difference.trial, safe(difference.expected), safe(difference.got),
                              error_text(difference.absolute)));
  }

  const RatioReport* ratio_to(std::string_view baseline) const {
    for (auto const& ratio : m_verdict.speed->ratios) {
      if (ratio.baseline == baseline) return &ratio;
    }
    return nullptr;
  }

  void speed(const Speed& speed) {
    line("speed", fmt::format("{:<10} {:>9}  {:<18} {}", "arm", "time", "interval", "candidate is faster by"),
         Colour::faint);
    for (auto const& arm : speed.arms) {
      auto const* const ratio = ratio_to(arm.name);
      auto const time = arm.time ? duration_text(arm.time->estimate) : std::string("–");
      auto const range = arm.time ? duration_range_text(arm.time->low, arm.time->high) : std::string("not measured");
      auto row = fmt::format("{:<10} {:>9}  {:<18}", safe(arm.name), time, range);
      if (ratio != nullptr) {
        row += fmt::format(" {} ({} to {})", ratio_text(ratio->ratio.estimate), ratio_text(ratio->ratio.low),
                           ratio_text(ratio->ratio.high));
      }
      while (row.back() == ' ') row.pop_back();
      line("speed", row);
    }
    auto const confidence = speed.ratios.empty() ? 0.0 : speed.ratios.front().confidence;
    auto foot = count_text(speed.rounds, "round", "rounds");
    if (speed.calls_per_round > 1) foot += fmt::format(" of {} calls", speed.calls_per_round);
    if (confidence > 0) foot += fmt::format(" · intervals hold with {:.4g} %", confidence * 100);
    line("speed", foot, Colour::faint);
    if (speed.launch_bound) {
      line("speed", "launch bound: an empty call with the same results takes more than a third as long", Colour::warn);
    }
    if (speed.unstable) line("speed", "unstable: the rounds differ more than a verdict should rest on", Colour::warn);
    for (auto const& sentence : speed.disturbed) line("speed", "disturbed: " + safe(sentence), Colour::warn);
  }

  void grade(const Grade& grade) {
    for (std::size_t i = 0; i < grade.runs.size(); ++i) {
      GradeRun const& run = grade.runs[i];
      auto text = fmt::format("ask {}: {}", i + 1, run.outcome == Outcome::pass ? "" : safe(run.message));
      if (run.outcome == Outcome::pass && run.speed) {
        std::vector<std::string> ratios;
        for (auto const& one : run.speed->ratios) {
          ratios.push_back(fmt::format("{} {} ({} to {})", ratio_text(one.ratio.estimate), safe(one.baseline),
                                       ratio_text(one.ratio.low), ratio_text(one.ratio.high)));
        }
        text += util::join(ratios, ", ");
      }
      line("grade", text, run.outcome == Outcome::pass ? Colour::plain : Colour::bad);
    }
    for (auto const& one : grade.ratios) {
      line("grade", fmt::format("versus {}: {} at least; the asks differ by {:.1f} %", safe(one.baseline),
                                ratio_text(one.ratio.low), one.spread * 100));
    }
  }

  void not_measured() {
    for (auto const& [path, reason] : m_verdict.not_measured) {
      if (!m_style.verbose && path.find("speed") == std::string::npos) continue;
      // A part that was not asked for is no news.
      if (!m_style.verbose && !m_verdict.speed) continue;
      auto const part = path.starts_with("/speed/") ? path.substr(7) : path;
      line("speed", fmt::format("not measured: {}: {}", safe(part), safe(reason)), Colour::faint);
    }
  }

  void reward() {
    auto const& reward = m_verdict.reward;
    // Only `run` and `grade` were asked for one, so only there its absence is news.
    bool const asked_for = m_verdict.command == "run" || m_verdict.command == "grade";
    if (!reward.value && (reward.reason.empty() || !asked_for)) return;
    auto const value = reward.value ? std::to_string(*reward.value) : std::string("none");
    auto const* const state = !reward.value ? "" : reward.final ? " (final)" : " (provisional)";
    auto const colour = !reward.value ? Colour::plain : *reward.value > 0 ? Colour::good : Colour::bad;
    auto text = coloured(colour, value) + state;
    if (!reward.reason.empty()) text += ": " + safe(reward.reason);
    line("reward", text);
  }

  /// Lines with a prefix, cut to head and tail unless everything was asked for.
  void quoted(std::string_view prefix, std::string_view text, std::size_t head, std::size_t tail) {
    auto const lines = util::split_lines(util::escape_untrusted(text));
    auto const cut = !m_style.verbose && lines.size() > head + tail + 1;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (cut && i == head) {
        m_out += fmt::format("{}… {} lines left out; -v shows them …\n", prefix, lines.size() - head - tail);
        i = lines.size() - tail;
      }
      m_out += fmt::format("{}{}\n", prefix, lines[i]);
    }
    m_label.clear();
  }

  void detail() {
    if (m_verdict.detail.empty() || (m_errors_shown && !m_style.verbose)) return;
    m_out += "  details\n";
    quoted("    ", m_verdict.detail, 6, 18);
  }

  void candidate_output() {
    if (util::trim(m_verdict.candidate_output).empty()) return;
    m_out += "  the candidate printed\n";
    quoted("    | ", m_verdict.candidate_output, 4, 8);
  }

  void warnings() {
    for (auto const& finding : m_verdict.task_findings) {
      line("warning", fmt::format("task is {}: {}", safe(finding.kind), safe(finding.message)), Colour::warn);
    }
    // What is missing for one reason is one line.
    std::vector<std::pair<std::string, std::vector<std::string>>> missing;
    for (auto const& protection : m_verdict.protections) {
      if (protection.in_force) continue;
      auto const same = std::find_if(missing.begin(), missing.end(),
                                     [&](auto const& known) { return known.first == protection.detail; });
      auto& names = same == missing.end() ? missing.emplace_back(protection.detail, std::vector<std::string>{}).second
                                          : same->second;
      names.push_back(protection.name);
    }
    for (auto const& [detail, names] : missing) {
      auto text = fmt::format("not in force: {}", safe(util::join(names, ", ")));
      if (!detail.empty()) text += ": " + safe(detail);
      line("warning", text, Colour::warn);
    }
  }

  void everything_else() {
    if (m_verdict.correctness && !m_verdict.correctness->seeds.empty()) {
      line("seeds", safe(util::join(m_verdict.correctness->seeds, " ")));
    }
    for (auto const& protection : m_verdict.protections) {
      if (protection.in_force) line("in force", fmt::format("{}: {}", safe(protection.name), safe(protection.detail)));
    }
    for (auto const& [key, value] : m_verdict.environment)
      line("machine", fmt::format("{}: {}", safe(key), safe(value)));
    for (auto const& [stage, seconds] : m_verdict.timings) {
      line("took", fmt::format("{}: {}", safe(stage), seconds_text(seconds)));
    }
    if (!m_verdict.task.sha256.empty()) line("task", fmt::format("sha256 {}", safe(m_verdict.task.sha256)));
    if (!m_verdict.candidate.sha256.empty()) line("judged", fmt::format("sha256 {}", safe(m_verdict.candidate.sha256)));
  }

  const Verdict& m_verdict;
  const TextStyle& m_style;
  std::string m_out;
  std::string m_label;
  bool m_errors_shown = false;
};

}  // namespace

std::string render_text(const Verdict& verdict, const TextStyle& style) { return TextReport(verdict, style).write(); }

}  // namespace cuda_agent::report
