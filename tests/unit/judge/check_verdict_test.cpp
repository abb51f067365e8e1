#include "judge/check_verdict.hpp"

#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "cuda_agent/verdict.hpp"
#include "judge/grade.hpp"
#include "judge/profile.hpp"
#include "judge/reward.hpp"
#include "judge/statistics.hpp"
#include "util/ed25519.hpp"

namespace cuda_agent::judge {
namespace {

using nlohmann::json;

/// A verdict whose figures follow from its samples.
Verdict timed(double candidate = 100) {
  Verdict verdict;
  verdict.command = "run";
  verdict.task.sha256 = std::string(64, 'a');
  verdict.candidate.sha256 = std::string(64, 'b');
  verdict.seed = "7";
  Speed speed;
  speed.mode = "gated";
  speed.rounds = 12;
  speed.calls_per_round = 2;
  for (auto const& [name, time] : {std::pair{"eager", 200.0}, std::pair{"candidate", candidate}}) {
    ArmSamples own{name, 6, 3, {}, {}};
    std::vector<double> times;
    for (int i = 0; i < speed.rounds; ++i) {
      own.spans.push_back(2 * time + 6 + 0.1 * i);
      own.tails.push_back(3 + 0.01 * i);
      times.push_back(without_null(own.spans.back(), own.tails.back(), {6, 3, true, 0}, 2));
    }
    speed.samples.push_back(own);
    speed.arms.push_back({name, estimate_location(times, 0.995), 24, 3});
  }
  auto const times = [&](int arm) {
    std::vector<double> result;
    for (double const span : speed.samples[static_cast<std::size_t>(arm)].spans) {
      result.push_back(without_null(span, 3, {6, 3, true, 0}, 2));
    }
    return result;
  };
  auto const estimate = estimate_ratio(times(0), times(1), 0.995);
  Interval ratio = estimate.ratio;
  ratio.low /= 1.01;
  ratio.high *= 1.01;
  speed.ratios = {{"eager", ratio, estimate.confidence, 0.01}};
  verdict.speed = speed;
  verdict.reward.value = 2;
  return verdict;
}

json graded() {
  auto const verdict = combine_grade({timed(), timed(101), timed(100.5)});
  return to_json(verdict);
}

json signed_verdict() {
  auto const folder = std::filesystem::temp_directory_path() / ("cuda-agent-test-" + std::to_string(::getpid()));
  auto const key = util::SigningKey::open_or_make(folder / "key.pem");
  json verdict = graded();
  verdict["signature"] = {
      {"algorithm", "ed25519"}, {"public_key", key->public_key()}, {"value", key->sign(signed_bytes(verdict))}};
  std::filesystem::remove_all(folder);
  return verdict;
}

std::vector<std::string> problems(const json& verdict) {
  auto const checked = check_verdict(verdict);
  return checked ? checked->problems : std::vector<std::string>{"not a verdict: " + checked.error().message};
}

TEST(CheckVerdict, AnHonestOneHolds) {
  auto const checked = check_verdict(to_json(timed()));
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_EQ(checked->problems, std::vector<std::string>());
  EXPECT_EQ(checked->recomputed, 3 + 3 + 3 + 1);
  EXPECT_FALSE(checked->is_signed);
}

TEST(CheckVerdict, AnHonestGradeHoldsAndItsSignatureToo) {
  auto const verdict = signed_verdict();
  EXPECT_EQ(problems(verdict), std::vector<std::string>());
  // As it is after it was written to a file and read again.
  EXPECT_EQ(problems(json::parse(verdict.dump(2))), std::vector<std::string>());
}

TEST(CheckVerdict, EveryFigureThatWasChangedIsNamed) {
  for (char const* const place :
       {"/speed/arms/0/time/low", "/speed/arms/1/time/estimate", "/speed/ratios/0/ratio/estimate",
        "/speed/ratios/0/ratio/low", "/speed/ratios/0/confidence", "/speed/samples/0/spans/3"}) {
    json verdict = to_json(timed());
    json& number = verdict[json::json_pointer(place)];
    number = number.get<double>() * 1.001;
    EXPECT_FALSE(problems(verdict).empty()) << place;
  }
  for (char const* const place : {"/grade/ratios/0/ratio/low", "/grade/ratios/0/spread",
                                  "/grade/runs/1/speed/ratios/0/ratio/low", "/grade/runs/2/speed/samples/1/null"}) {
    json verdict = graded();
    json& number = verdict[json::json_pointer(place)];
    number = number.get<double>() * 1.001;
    EXPECT_FALSE(problems(verdict).empty()) << place;
  }
}

TEST(CheckVerdict, ARewardThatTheAsksDoNotGiveIsNamed) {
  json verdict = graded();
  verdict["reward"]["value"] = 3;
  ASSERT_EQ(problems(verdict).size(), 1U);
  EXPECT_NE(problems(verdict)[0].find("reward.value"), std::string::npos);
}

TEST(CheckVerdict, LessPrecisionIsPartOfTheReward) {
  auto asks = std::vector<Verdict>{timed(), timed(101), timed(100.5)};
  asks[0].correctness.emplace().precision.emplace(PrecisionReport{.rule = "same", .lower = true});
  json verdict = to_json(combine_grade(asks));
  EXPECT_EQ(verdict["reward"]["value"], 1);
  EXPECT_EQ(problems(verdict), std::vector<std::string>());
  verdict["grade"]["runs"][0]["correctness"]["precision"]["lower"] = false;
  ASSERT_EQ(problems(verdict).size(), 1U);
  EXPECT_NE(problems(verdict)[0].find("reward.value"), std::string::npos);
}

TEST(CheckVerdict, OneChangedDigitBreaksTheSignature) {
  json verdict = signed_verdict();
  verdict["message"] = verdict["message"].get<std::string>() + "!";
  ASSERT_FALSE(problems(verdict).empty());
  EXPECT_NE(problems(verdict)[0].find("signature"), std::string::npos);
}

TEST(CheckVerdict, AGradeOfFewerAsksIsNamed) {
  json verdict = graded();
  verdict["grade"]["runs"].erase(2);
  EXPECT_FALSE(problems(verdict).empty());
}

TEST(CheckVerdict, WhatIsNoVerdictIsRefused) {
  for (json const& other :
       {json(), json::array(), json{{"schema", "other"}}, json{{"schema", "cuda-agent/verdict/1"}},
        json{{"schema", "cuda-agent/verdict/1"}, {"signature", 3}, {"speed", json::object()}, {"grade", 1}}}) {
    auto const checked = check_verdict(other);
    ASSERT_FALSE(checked) << other.dump();
    EXPECT_EQ(checked.error().outcome, Outcome::usage_error);
  }
}

}  // namespace
}  // namespace cuda_agent::judge
