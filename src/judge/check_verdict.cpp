#include "judge/check_verdict.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>

#include <spdlog/fmt/fmt.h>

#include "cuda_agent/verdict.hpp"
#include "judge/grade.hpp"
#include "judge/profile.hpp"
#include "judge/reward.hpp"
#include "judge/statistics.hpp"
#include "util/ed25519.hpp"
#include "util/text.hpp"

namespace cuda_agent::judge {
namespace {

using nlohmann::json;

/// Two ways of adding up the same doubles differ by less.
constexpr double rounding = 1e-9;
constexpr std::size_t most_samples = 10'000;

class FigureChecker {
 public:
  explicit FigureChecker(const json& verdict) : m_verdict(verdict) {}

  VerdictCheck check() {
    signature();
    if (m_verdict.at("speed").is_object()) speed(m_verdict.at("speed"), "speed");
    if (m_verdict.at("grade").is_object()) grade(m_verdict.at("grade"));
    return std::move(m_check);
  }

 private:
  void signature() {
    json const& own = m_verdict.at("signature");
    if (!own.is_object()) return;
    m_check.is_signed = true;
    m_check.public_key = own.at("public_key").get<std::string>();
    bool const holds =
        own.at("algorithm") == "ed25519" &&
        util::verify_signature(signed_bytes(m_verdict), m_check.public_key, own.at("value").get<std::string>());
    if (!holds) problem("signature: it is not that of this content: something was changed after it was signed");
  }

  void problem(const std::string& text) { m_check.problems.push_back(util::escape_untrusted(text, 512)); }

  void expect(double said, double right, const std::string& path) {
    ++m_check.recomputed;
    if (std::abs(said - right) <= rounding * std::max(1.0, std::abs(right))) return;
    problem(fmt::format("{}: it says {:.9g}, the samples give {:.9g}", path, said, right));
  }

  void expect(const json& said, const Interval& right, const std::string& path) {
    expect(said.at("estimate").get<double>(), right.estimate, path + ".estimate");
    expect(said.at("low").get<double>(), right.low, path + ".low");
    expect(said.at("high").get<double>(), right.high, path + ".high");
  }

  static std::vector<double> numbers(const json& list) {
    if (list.size() > most_samples) throw std::out_of_range("more samples than any ask makes");
    return list.get<std::vector<double>>();
  }

  /// Microseconds a call of each arm, by round.
  static std::map<std::string, std::vector<double>> times_of(const json& speed) {
    std::map<std::string, std::vector<double>> times;
    int const calls = std::max(speed.at("calls_per_round").get<int>(), 1);
    for (json const& one : speed.at("samples")) {
      auto const spans = numbers(one.at("spans"));
      auto const tails = numbers(one.at("tails"));
      if (spans.size() != tails.size()) throw std::out_of_range("as many spans as tails are expected");
      NullCall const null{one.at("null").get<double>(), one.at("null_tail").get<double>(), true, 0};
      auto& own = times[one.at("name").get<std::string>()];
      for (std::size_t i = 0; i < spans.size(); ++i) own.push_back(without_null(spans[i], tails[i], null, calls));
    }
    return times;
  }

  void speed(const json& speed, const std::string& path) {
    double const confidence = StoppingRule().confidence;
    auto const times = times_of(speed);
    for (json const& arm : speed.at("arms")) {
      auto const name = arm.at("name").get<std::string>();
      auto const own = times.find(name);
      if (own == times.end() || own->second.empty()) {
        problem(fmt::format("{}.arms: {} has no samples", path, name));
        continue;
      }
      expect(arm.at("time"), estimate_location(own->second, confidence), fmt::format("{}.arms.{}.time", path, name));
    }
    for (json const& one : speed.at("ratios")) {
      auto const baseline = one.at("baseline").get<std::string>();
      if (times.count(baseline) == 0 || times.count("candidate") == 0) {
        problem(fmt::format("{}.ratios: {} has no samples", path, baseline));
        continue;
      }
      auto const estimate = estimate_ratio(times.at(baseline), times.at("candidate"), confidence);
      json const& between = one.at("between_processes");
      double const wider = 1 + (between.is_number() ? between.get<double>() : 0);
      double const factor = baseline == "eager" ? speed.at("eager_factor").get<double>() : 1;
      Interval const right{estimate.ratio.estimate * factor, estimate.ratio.low / wider * factor,
                           estimate.ratio.high * wider * factor};
      expect(one.at("ratio"), right, fmt::format("{}.ratios.{}", path, baseline));
      expect(one.at("confidence").get<double>(), estimate.confidence,
             fmt::format("{}.ratios.{}.confidence", path, baseline));
    }
  }

  /// None in a verdict of a version that did not measure it.
  static std::optional<PrecisionReport> precision_of(const json& said) {
    if (!said.is_object()) return std::nullopt;
    PrecisionReport report;
    report.rule = said.at("rule").get<std::string>();
    report.lower = said.at("lower").get<bool>();
    return report;
  }

  static Interval interval_of(const json& value) {
    return {value.at("estimate").get<double>(), value.at("low").get<double>(), value.at("high").get<double>()};
  }

  /// The grade of these runs, as far as figures go.
  void grade(const json& grade) {
    std::vector<Verdict> asks;
    int number = 0;
    for (json const& run : grade.at("runs")) {
      std::string const path = fmt::format("grade.runs[{}]", number++);
      Verdict ask;
      bool const right = run.at("outcome") == "pass" || run.at("outcome") == "slow";
      ask.outcome = right ? Outcome::pass : Outcome::wrong;
      ask.fault = right ? Fault::none : Fault::candidate;
      if (run.at("speed").is_object()) {
        speed(run.at("speed"), path + ".speed");
        ask.speed.emplace();
        for (json const& one : run.at("speed").at("ratios")) {
          ask.speed->ratios.push_back(
              {one.at("baseline").get<std::string>(), interval_of(one.at("ratio")), 0, std::nullopt});
        }
      } else if (right) {
        problem(path + ": it passed without having been timed");
        return;
      }
      if (json const& correctness = run.at("correctness"); correctness.is_object()) {
        ask.correctness.emplace();
        ask.correctness->precision = precision_of(correctness.value("precision", json()));
      }
      asks.push_back(std::move(ask));
    }
    bool const all_right =
        std::all_of(asks.begin(), asks.end(), [](const Verdict& ask) { return ask.outcome == Outcome::pass; });
    if (asks.empty() || (all_right && asks.size() != grade_runs)) {
      problem(
          fmt::format("grade.runs: {} asks; a grade has {}, or ends with one that failed", asks.size(), grade_runs));
      return;
    }
    for (json const& finding : m_verdict.at("task").at("findings")) {
      asks.front().task_findings.push_back({finding.at("kind").get<std::string>(), ""});
    }
    Verdict const again = combine_grade(asks);
    combined(grade.at("ratios"), *again.grade);
    if (all_right) reward(again.reward);
  }

  void combined(const json& said, const Grade& right) {
    if (said.size() != right.ratios.size()) {
      problem("grade.ratios: not the baselines of the asks");
      return;
    }
    for (std::size_t i = 0; i < right.ratios.size(); ++i) {
      std::string const path = "grade.ratios." + right.ratios[i].baseline;
      expect(said[i].at("ratio"), right.ratios[i].ratio, path);
      expect(said[i].at("spread").get<double>(), right.ratios[i].spread, path + ".spread");
    }
  }

  void reward(const Reward& right) {
    json const& said = m_verdict.at("reward").at("value");
    ++m_check.recomputed;
    bool const alike = right.value ? said == json(*right.value) : said.is_null();
    if (!alike) {
      problem(fmt::format("reward.value: it says {}, the asks give {}", said.dump(),
                          right.value ? std::to_string(*right.value) : "none"));
    }
  }

  const json& m_verdict;
  VerdictCheck m_check;
};

}  // namespace

std::string signed_bytes(json verdict) {
  verdict.erase("signature");
  return verdict.dump();
}

Result<VerdictCheck> check_verdict(const json& verdict) {
  auto const unfit = [](const std::string& why) {
    return fail(Outcome::usage_error,
                fmt::format("this is no verdict of cuda-agent: {}", util::escape_untrusted(why, 300)),
                {"give a file that `cuda-agent run --json` or `cuda-agent grade` wrote"});
  };
  if (!verdict.is_object() || verdict.value("schema", json()) != "cuda-agent/verdict/1") {
    return unfit("its \"schema\" is not cuda-agent/verdict/1");
  }
  try {
    return FigureChecker(verdict).check();
  } catch (const std::exception& error) {  // a key that is missing, a type that is another
    return unfit(error.what());
  }
}

}  // namespace cuda_agent::judge
