#include "cuda_agent/verdict.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "schema_check.hpp"

namespace cuda_agent {
namespace {

using nlohmann::json;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A verdict with something in every key.
Verdict full() {
  Verdict v;
  v.command = "run";
  v.time = "2024-05-01T12:00:00Z";
  v.message = "Correct and faster than both baselines";
  v.hints = {"Run grade to confirm"};
  v.reward = {3, false, "1.31× eager (low end 1.28) and 1.07× compiled (low end 1.06): both above 1.0526", "interval"};
  v.workspace = "agent_workdir";
  v.task = {"axpby", std::string(64, 'a')};
  v.contract = "cuda-agent";
  v.task_findings = {{"slow_inputs", "get_inputs takes 2 s"}};
  v.candidate = {"axpby", std::string(64, 'b')};
  v.candidate_output = "hello\n";
  BuildReport build;
  build.device = "cuda";
  build.architecture = "sm_90a";
  build.architecture_from = "--arch";
  build.objects = {
      {"kernels/axpby.cu", "nvcc", 0.9, false, {{"kernels/axpby.cu", 12, 3, "warning", "unused variable", "compile"}}},
      {"cuda_extension", "link", 0.2, false, {{"", 0, 0, "note", "somewhere", "link"}}}};
  build.kernels = {{"axpby_kernel(float const*, float*)", "sm_90a", 24, 0, 0, 0, 1024}};
  build.flags = {{"nvcc", {"-O3"}}};
  build.extension_sha256 = std::string(64, 'c');
  build.extension_path = "/cache/cuda_extension.so";
  build.seconds = 1.1;
  v.build = build;
  Correctness correctness;
  correctness.trials = 5;
  correctness.passed = 5;
  correctness.timed_compared = 48;
  correctness.tolerances = {{"float32", {1e-2, 1e-2}}};
  correctness.worst = ElementDifference{"output[1].logits", {3, 4}, "1", "1.0001", 1e-4, 1e-4, 2};
  correctness.worst_rms_scaled = 1e-4;
  correctness.seeds = {"18446744073709551615"};
  v.correctness = correctness;
  Speed speed;
  speed.mode = "answer";
  speed.rounds = 16;
  speed.calls_per_round = 1;
  speed.arms = {{"eager", Interval{120, 118, 122}, 16, 3.5}, {"candidate", Interval{90, 89, 91}, 16, 3.4}};
  speed.ratios = {{"eager", {1.31, 1.28, 1.34}, 0.995, 0.004}, {"compiled", {1.07, 1.06, 1.08}, 0.995, 0.004}};
  speed.channels = {2, 16, 200, 271.5, 270.9};
  speed.disturbed = {"round 3 met another process and was repeated"};
  v.speed = speed;
  v.protections = {{"sandbox", true, "bubblewrap"}, {"landlock", false, "not built into the kernel"}};
  v.environment = {{"torch", "2.11.0"}};
  v.timings = {{"build", 1.1}, {"verify", 0.4}};
  return v;
}

/// One that never came far.
Verdict failed() {
  Verdict v;
  v.command = "run";
  set_failure(v, Error(Outcome::compile_error, "kernels/axpby.cu:12:3: expected ';'", {"Add it"}, "compiler output"));
  v.reward = {-1, false, "compile_error: the candidate's fault", "interval"};
  return v;
}

/// Everything that JSON cannot say.
Verdict hostile() {
  Verdict v = full();
  const double not_a_number = std::nan("");
  v.message = "bytes \xff\xfe and \x1b[31m";
  v.candidate_output = std::string("nul \0 inside", 12) + "\xc3";
  v.environment = {{"key \xff", "value \xff"}};
  v.timings = {{"verify", not_a_number}, {"build", infinity}};
  v.correctness->worst->relative = infinity;
  v.correctness->worst_rms_scaled = infinity;
  v.correctness->first_mismatch = ElementDifference{"output", {}, "nan", "1", not_a_number, not_a_number, 1};
  v.correctness->tolerances = {{"float32", {infinity, not_a_number}}};
  v.speed->ratios[0].ratio = {not_a_number, -infinity, infinity};
  v.speed->arms[0].null = not_a_number;
  v.speed->arms[0].time.reset();
  v.speed->arms[1].null.reset();
  v.build->seconds = not_a_number;
  return v;
}

json schema() {
  std::ifstream file(CUDA_AGENT_VERDICT_SCHEMA);
  return json::parse(file);
}

void expect_conforms(const Verdict& verdict, const std::string& name) {
  const std::string dumped = to_json(verdict).dump();  // throws when a text is not UTF-8
  for (const std::string& error : tests::schema_errors(schema(), json::parse(dumped))) {
    ADD_FAILURE() << name << error;
  }
  // For other validators.
  if (const char* folder = std::getenv("CUDA_AGENT_VERDICT_SAMPLES"); folder != nullptr) {
    std::ofstream(std::string(folder) + "/" + name + ".json") << dumped;
  }
}

/// Every null below `value` that has no reason, those that mean "there is none" left out.
void collect_unexplained(const json& value, const json::json_pointer& place, const json& reasons,
                         std::vector<std::string>& found) {
  const std::string last = place.empty() ? "" : place.back();
  const bool may_be_none = last == "worst" || last == "first_mismatch" || last == "line" || last == "column";
  if (value.is_null() && !may_be_none && !reasons.contains(place.to_string())) {
    found.push_back(place.to_string());
  }
  if (value.is_object() || value.is_array()) {
    for (const auto& [key, member] : value.items()) {
      collect_unexplained(member, place / key, reasons, found);
    }
  }
}

TEST(VerdictJson, ConformsToTheSchema) {
  expect_conforms(full(), "full");
  expect_conforms(failed(), "failed");
  expect_conforms(hostile(), "hostile");
  expect_conforms(Verdict{}, "empty");
}

TEST(VerdictJson, ConformsToTheSchemaForEveryOutcome) {
  for (int i = 0; i <= static_cast<int>(Outcome::interrupted); ++i) {
    Verdict v;
    set_failure(v, Error(static_cast<Outcome>(i), "something"));
    expect_conforms(v, std::string("outcome_") + std::string(to_string(v.outcome)));
  }
}

TEST(VerdictJson, TheSchemaRefusesUnknownAndMissingKeys) {
  json v = to_json(full());
  v["surprise"] = 1;
  EXPECT_FALSE(tests::schema_errors(schema(), v).empty());
  v = to_json(full());
  v["speed"].erase("mode");
  EXPECT_FALSE(tests::schema_errors(schema(), v).empty());
}

TEST(VerdictJson, EveryNullThatWasNotMeasuredHasAReason) {
  for (const Verdict& verdict : {full(), failed(), hostile(), Verdict{}}) {
    const json v = to_json(verdict);
    std::vector<std::string> found;
    collect_unexplained(v, json::json_pointer(), v["not_measured"], found);
    EXPECT_TRUE(found.empty()) << found.front();
  }
}

TEST(VerdictJson, EveryReasonPointsToANull) {
  const json v = to_json(hostile());
  for (const auto& [path, reason] : v["not_measured"].items()) {
    EXPECT_TRUE(v.at(json::json_pointer(path)).is_null()) << path;
    EXPECT_FALSE(reason.get<std::string>().empty()) << path;
  }
}

TEST(VerdictJson, TheJudgesOwnReasonIsKept) {
  Verdict v;
  v.command = "verify";
  v.not_measured = {{"speed", "the machine is busy"}, {"build.seconds", "taken from a session"}};
  const json out = to_json(v);
  EXPECT_EQ(out["not_measured"]["/speed"], "the machine is busy");
  EXPECT_EQ(out["not_measured"]["/build/seconds"], "taken from a session");
  EXPECT_EQ(out["not_measured"]["/correctness"], "`verify` does not measure this");
}

TEST(VerdictJson, WhatWasNotReachedSaysWhy) {
  EXPECT_EQ(to_json(failed())["not_measured"]["/speed"], "not reached: the ask ended with compile_error");
}

TEST(VerdictJson, KeepsTheNumbers) {
  const json v = to_json(full());
  EXPECT_EQ(v["schema"], "cuda-agent/verdict/1");
  EXPECT_EQ(v["exit_code"], 0);
  EXPECT_EQ(v["reward"]["value"], 3);
  EXPECT_EQ(v["correctness"]["worst"]["index"], json::array({3, 4}));
  EXPECT_EQ(v["correctness"]["seeds"][0], "18446744073709551615");
  EXPECT_EQ(v["speed"]["ratios"][0]["ratio"]["low"], 1.28);
  EXPECT_EQ(v["speed"]["arms"][0]["null"], 3.5);
  EXPECT_EQ(v["build"]["kernels"][0]["shared_memory"], 1024);
  EXPECT_EQ(v["build"]["objects"][0]["diagnostics"][0]["line"], 12);
  EXPECT_TRUE(v["build"]["objects"][1]["diagnostics"][0]["line"].is_null());
  EXPECT_EQ(v["reward"]["reason"], full().reward.reason);  // valid UTF-8 stays as it is
}

TEST(VerdictJson, TheShareOfOwnKernelsIsThatOfTheirTime) {
  Verdict v = full();
  v.witness.emplace();
  json found = to_json(v);
  EXPECT_TRUE(found["witness"]["kernels"].is_null());
  EXPECT_TRUE(found["not_measured"].contains("/witness/own_share"));
  v.witness->kernels = {{"sgemm", 2, 30, false}, {"axpby_kernel(float const*, float*)", 1, 10, true}};
  found = to_json(v);
  EXPECT_EQ(found["witness"]["own_share"], 0.25);
  EXPECT_EQ(found["witness"]["kernels"][1],
            (json{{"name", "axpby_kernel(float const*, float*)"}, {"calls", 1}, {"time", 10.0}, {"own", true}}));
  EXPECT_FALSE(found["not_measured"].contains("/witness/own_share"));
  EXPECT_TRUE(tests::schema_errors(schema(), found).empty());
  v.witness->kernels->clear();
  found = to_json(v);
  EXPECT_TRUE(found["witness"]["kernels"].empty() && found["witness"]["kernels"].is_array());
  EXPECT_TRUE(found["witness"]["own_share"].is_null());
  EXPECT_TRUE(tests::schema_errors(schema(), found).empty());
}

TEST(VerdictJson, TextsOfOthersAreMadeSafe) {
  const json v = to_json(hostile());
  EXPECT_EQ(v["message"], "bytes \\xff\\xfe and \\x1b[31m");
  EXPECT_EQ(v["candidate"]["output"], "nul \\x00 inside\\xc3");
}

TEST(SetFailure, TakesEverythingFromTheError) {
  Error error(Outcome::timeout, "no answer within 5 s", {"raise --call-timeout"}, "detail");
  error.fault = Fault::task;
  Verdict v;
  set_failure(v, error);
  EXPECT_EQ(v.outcome, Outcome::timeout);
  EXPECT_EQ(v.fault, Fault::task);
  EXPECT_EQ(v.message, "no answer within 5 s");
  EXPECT_EQ(v.hints, (std::vector<std::string>{"raise --call-timeout"}));
  EXPECT_EQ(v.detail, "detail");
  EXPECT_EQ(to_json(v)["exit_code"], 8);
}

}  // namespace
}  // namespace cuda_agent
