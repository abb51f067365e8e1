#include "selftest/summary.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::selftest {

namespace {

CaseResult result(const std::string& name, Kind kind, State state) {
  CaseResult one;
  one.one.name = name;
  one.one.kind = kind;
  one.one.what = "does something";
  one.one.layer = kind == Kind::exploit ? "values" : "";
  one.one.expect.outcomes = {"wrong"};
  one.one.expect.exit_codes = {6};
  one.state = state;
  if (state == State::left_out) return one;
  one.answer.outcome = "wrong";
  one.answer.exit_code = 6;
  if (state == State::wrong) one.problems = {"got pass (exit code 0), expected wrong (exit code 6)"};
  return one;
}

std::vector<CaseResult> all_good() {
  auto gpu = result("exploits/c", Kind::exploit, State::left_out);
  gpu.left_out = "it needs a GPU";
  gpu.one.needs_cuda = true;
  auto gap = result("exploits/d", Kind::exploit, State::left_out);
  gap.one.gap = gap.left_out = "nobody looks";
  return {result("exploits/a", Kind::exploit, State::as_expected), gpu, gap,
          result("honest/b", Kind::honest, State::as_expected)};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST(Summary, CountsWhatIsAsExpectedAndWhatIsLeftOut) {
  auto const counts = count(all_good());
  EXPECT_EQ(outcome_of(counts), Outcome::pass);
  EXPECT_EQ(
      in_words(counts),
      "1 of 1 exploits caught, 1 of 1 honest candidates passed, 1 left out: they need a GPU, 1 left out: known gaps "
      "(-v lists them)");
  auto const object = as_json(all_good());
  EXPECT_EQ(object.at("cases").size(), 4U);
  EXPECT_EQ(object.at("cases")[1].at("left_out"), "it needs a GPU");
  EXPECT_TRUE(object.at("cases")[1].at("exit_code").is_null());
  EXPECT_EQ(object.at("counts").at("known_gaps"), 1);
}

TEST(Summary, OneWrongCaseIsEnough) {
  auto results = all_good();
  results.push_back(result("honest/refused", Kind::honest, State::wrong));
  results.push_back(result("honest/short", Kind::honest, State::not_judged));
  EXPECT_EQ(outcome_of(count(results)), Outcome::internal_error);
  EXPECT_TRUE(contains(in_words(count(results)), "1 of 2 honest candidates passed"));
  EXPECT_TRUE(contains(in_words(count(results)), "verdicts of this installation cannot be trusted"));
  auto const table = as_table(results, false);
  EXPECT_TRUE(contains(table, "honest/refused: got pass (exit code 0)")) << table;
}

TEST(Summary, WhatCouldNotBeJudgedIsTheMachinesFault) {
  auto results = all_good();
  results.push_back(result("honest/short", Kind::honest, State::not_judged));
  EXPECT_EQ(outcome_of(count(results)), Outcome::environment_error);
  EXPECT_FALSE(contains(in_words(count(results)), "trusted"));
}

TEST(Summary, TheTableHasARowForEachAndSaysMoreWhenAsked) {
  auto const table = as_table(all_good(), false);
  EXPECT_TRUE(contains(table, "exploits/a")) << table;
  EXPECT_TRUE(contains(table, "wrong (6)")) << table;
  EXPECT_FALSE(contains(table, "exploits/c")) << table;
  EXPECT_TRUE(contains(as_table(all_good(), true), "left out: nobody looks"));
}

}  // namespace cuda_agent::selftest
