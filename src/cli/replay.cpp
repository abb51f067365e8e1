#include "cli/replay.hpp"

#include <string>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "cli/ask.hpp"
#include "cli/seeds.hpp"
#include "util/text.hpp"

namespace cuda_agent::cli {
namespace {

using nlohmann::json;

struct CheckedAsk {
  Seeds seeds;
  std::string printed;  ///< the seeds, as in the verdict
  std::string outcome;
  int trials = 0;
};

void add(std::vector<CheckedAsk>& asks, const json& of, const json& seed) {
  auto const printed = seed.is_string() ? seed.get<std::string>() : std::string();
  auto const seeds = seeds_in(printed);
  auto const& checked = of.at("correctness");
  // Nothing was checked: there is nothing to repeat.
  if (!seeds || !checked.is_object() || checked.at("trials").get<int>() < 1) return;
  asks.push_back({*seeds, printed, of.at("outcome").get<std::string>(), checked.at("trials").get<int>()});
}

/// The asks whose checks can be repeated.
std::vector<CheckedAsk> asks_of(const json& verdict) {
  std::vector<CheckedAsk> asks;
  if (verdict.at("grade").is_object()) {
    for (json const& run : verdict.at("grade").at("runs")) add(asks, run, run.at("seed"));
  } else {
    add(asks, verdict, verdict.at("seed"));
  }
  return asks;
}

/// Speed is not repeated: an outcome that rests on it means that the check was passed.
std::string checked_outcome(const std::string& outcome) { return outcome == "slow" ? "pass" : outcome; }

}  // namespace

Result<Replay> replay(const json& verdict, const CheckVerdictOptions& options, Console& console) {
  Replay result;
  std::vector<CheckedAsk> asks;
  try {
    asks = asks_of(verdict);
  } catch (const json::exception& error) {
    return fail(Outcome::usage_error, fmt::format("this is no verdict of cuda-agent: {}", error.what()));
  }
  if (asks.empty()) {
    return fail(Outcome::usage_error, "this verdict has no checks that could be repeated",
                {"a verdict of `verify`, `run` or `grade` that got as far as the checks has"});
  }
  for (CheckedAsk const& ask : asks) {
    AskOptions again;
    again.command = "verify";
    again.workspace = options.workspace;
    again.task = options.task;
    again.output = options.output;
    again.judge = options.judge;
    again.judge.stage = judge::Stage::verify;
    ask.seeds.set(again.judge);
    again.judge.trials = ask.trials;
    Verdict const got = answer_quietly(again, console);
    auto const outcome = std::string(to_string(got.outcome));
    result.done.push_back(fmt::format("seed {}, {} trials: {}", ask.printed, ask.trials, outcome));
    for (auto const& [what, own, said] :
         {std::tuple{"task", got.task.sha256, verdict.at("task").at("sha256")},
          std::tuple{"candidate", got.candidate.sha256, verdict.at("candidate").at("sha256")}}) {
      if (said != json(own)) {
        result.problems.push_back(
            fmt::format("replay: the workspace's {} is another one (SHA-256 {})", what, own.empty() ? "unknown" : own));
      }
    }
    if (outcome != checked_outcome(ask.outcome)) {
      result.problems.push_back(fmt::format("replay: seed {} came out as {} instead of {}: {}", ask.printed, outcome,
                                            util::escape_untrusted(ask.outcome, 32), got.message));
    }
    if (!result.problems.empty()) break;
  }
  return result;
}

}  // namespace cuda_agent::cli
