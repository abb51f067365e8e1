#include "selftest/summary.hpp"

#include <gtest/gtest.h>

#include "selftest/results_json.hpp"
#include "selftest/table.hpp"

namespace cuda_agent::selftest {

namespace {

CaseResult result(const std::string& name, Kind kind, State state) {
  CaseResult one;
  one.one.name = name;
  one.one.kind = kind;
  one.one.what = "does something";
  one.one.layer = kind == Kind::exploit ? "comparison" : "";
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

/// An exploit that is caught, with the state of its proof.
CaseResult proof(const std::string& name, const std::string& layer, Proof::State state) {
  auto one = result(name, Kind::exploit, State::as_expected);
  one.one.layer = layer;
  one.proof.state = state;
  if (state == Proof::State::not_switchable) return one;
  one.proof.through = Answer{};
  one.proof.through->outcome = state == Proof::State::proven ? "pass" : "crash";
  one.proof.through->exit_code = state == Proof::State::proven ? 0 : 6;
  if (state == Proof::State::not_proven) one.proof.problems = {"something else than seal catches it"};
  return one;
}

std::vector<CaseResult> all_proven() {
  return {proof("exploits/a", "comparison", Proof::State::proven),
          proof("exploits/b", "clock", Proof::State::not_switchable),
          proof("exploits/c", "sandbox", Proof::State::not_switchable),
          proof("exploits/d", "sandbox", Proof::State::not_switchable),
          result("honest/e", Kind::honest, State::as_expected)};
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

TEST(Summary, SaysWhatIsProvenAndWhatCannotBe) {
  EXPECT_EQ(proofs_in_words(count(all_good())), "") << "no proof was tried";
  EXPECT_TRUE(as_json(all_good()).at("proofs").is_null());
  auto const counts = count(all_proven());
  EXPECT_EQ(outcome_of(counts), Outcome::pass);
  EXPECT_EQ(proofs_in_words(counts),
            "1 of 1 exploits get through once the layers that catch them are switched off; of 3 the layer cannot be "
            "switched off: clock 1, sandbox 2");
  auto const table = as_table(all_proven(), false);
  EXPECT_TRUE(contains(table, "--without comparison --policy none: pass (0)")) << table;
  EXPECT_TRUE(contains(table, "cannot be switched off: clock")) << table;
  auto const object = as_json(all_proven());
  EXPECT_EQ(object.at("proofs").at("not_switchable").at("sandbox"), 2);
  EXPECT_EQ(object.at("cases")[0].at("proof").at("through").at("outcome"), "pass");
  EXPECT_EQ(object.at("cases")[1].at("proof").at("state"), "not_switchable");
  EXPECT_TRUE(object.at("cases")[4].at("proof").is_null()) << "honest";
}

TEST(Summary, OneThatIsNotProvenIsEnough) {
  auto results = all_proven();
  results.push_back(proof("exploits/f", "seal", Proof::State::not_proven));
  EXPECT_EQ(outcome_of(count(results)), Outcome::internal_error);
  EXPECT_TRUE(contains(proofs_in_words(count(results)), "1 of 2 exploits get through"));
  auto const table = as_table(results, false);
  EXPECT_TRUE(contains(table, "NOT PROVEN  exploits/f")) << table;
  EXPECT_TRUE(contains(table, "exploits/f: something else than seal catches it")) << table;
  EXPECT_FALSE(contains(table, "cannot be trusted")) << "what is caught is caught";
}

TEST(Summary, ACaseThatWasJudgedOftenHasOneRowAndTheOneThatFailedSpeaksForIt) {
  auto results = all_good();
  for (int i = 0; i < 2; ++i) results.push_back(result("honest/b", Kind::honest, State::as_expected));
  EXPECT_TRUE(contains(as_table(results, false), "wrong (6); 3 of 3 ok")) << as_table(results, false);
  EXPECT_TRUE(contains(in_words(count(results)), "3 of 3 honest candidates passed"));
  results.push_back(result("honest/b", Kind::honest, State::wrong));
  auto const table = as_table(results, false);
  EXPECT_TRUE(contains(table, "WRONG  honest/b")) << table;
  EXPECT_TRUE(contains(table, "3 of 4 ok")) << table;
}

}  // namespace cuda_agent::selftest
