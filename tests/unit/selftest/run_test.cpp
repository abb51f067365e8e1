#include "selftest/run.hpp"

#include <filesystem>

#include "folder.hpp"
#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace fs = std::filesystem;

namespace {

/// A judge made of sh, so that its answers can be chosen.
class RunCases : public InFolder {
 protected:
  void SetUp() override {
    InFolder::SetUp();
    write("tasks/case_binding.cpp", "");
    m_options.tasks = at("tasks");
    m_options.binary = at("judge");
    m_options.jobs = 2;
  }
  void judge_is(const std::string& script) const {
    write("judge", "#!/bin/sh\n" + script);
    fs::permissions(at("judge"), fs::perms::owner_all);
  }
  /// An exploit that must be found wrong.
  Case exploit(const std::string& name) const {
    write(fs::path("exploits") / name / "model_new.py", "");
    Case one;
    one.folder = at(fs::path("exploits") / name);
    one.name = "exploits/" + name;
    one.layer = "comparison";
    one.expect.outcomes = {"wrong"};
    one.expect.exit_codes = {6};
    return one;
  }
  Case honest(const std::string& name) const {
    auto one = exploit(name);
    one.kind = Kind::honest;
    one.layer.clear();
    return one;
  }
  Result<std::vector<CaseResult>> run(const std::vector<Case>& cases) {
    m_ended = 0;
    return run_cases(cases, m_options, {[](const Case&) {}, [this](const CaseResult&) { ++m_ended; }});
  }
  /// The problems of the only case.
  std::vector<std::string> problems(const std::string& script) {
    judge_is(script);
    auto const results = run({exploit("one")});
    if (!results) return {results.error().message};
    return results->front().problems;
  }

  Options m_options;
  int m_ended = 0;
};

const std::string says_pass = "echo '{\"outcome\":\"pass\",\"message\":\"m\",\"reward\":{\"value\":1}}'\n";
const std::string says_wrong = "echo '{\"outcome\":\"wrong\",\"message\":\"m\",\"reward\":{\"value\":-1}}'\n";

TEST_F(RunCases, GivesTheResultsInTheOrderOfTheCases) {
  judge_is("case $2 in */workspace) ;; *) exit 2 ;; esac\n" + says_wrong + "exit 6\n");
  auto needs_gpu = exploit("b");
  needs_gpu.needs_cuda = true;
  auto gap = exploit("c");
  gap.gap = "nobody looks";
  auto const results = run({exploit("a"), needs_gpu, gap, exploit("d"), exploit("e")});
  ASSERT_TRUE(results) << results.error().message;
  ASSERT_EQ(results->size(), 5U);
  EXPECT_EQ(m_ended, 3);
  std::vector<State> states;
  for (auto const& result : *results) states.push_back(result.state);
  EXPECT_EQ(states, (std::vector<State>{State::as_expected, State::left_out, State::left_out, State::as_expected,
                                        State::as_expected}));
  EXPECT_EQ((*results)[3].one.name, "exploits/d");
  EXPECT_EQ((*results)[1].left_out, "it needs a GPU");
  EXPECT_EQ((*results)[2].left_out, "nobody looks");
}

TEST_F(RunCases, SeesAnExploitThatGetsThrough) {
  EXPECT_EQ(problems("echo '{\"outcome\":\"pass\",\"message\":\"m\",\"reward\":{\"value\":1}}'\n"),
            std::vector<std::string>{"got pass (exit code 0), expected wrong (exit code 6)"});
}

TEST_F(RunCases, SeesWhatIsLeftBehind) {
  EXPECT_EQ(problems("echo x > $2/model_new.py\n" + says_wrong + "exit 6\n"),
            std::vector<std::string>{"changed in the workspace: model_new.py"});
  EXPECT_EQ(problems(says_wrong + "setsid sleep 30 >/dev/null 2>&1 &\nexit 6\n"),
            std::vector<std::string>{"left running: sleep"});
}

TEST_F(RunCases, SeesAJudgeThatDies) {
  EXPECT_EQ(problems("kill -9 $$\n"), std::vector<std::string>{"the judge was killed by signal 9 (SIGKILL)"});
  EXPECT_EQ(problems("exit 6\n").size(), 1U) << "no verdict";
}

TEST_F(RunCases, EndsWhereNoCaseCanBeJudged) {
  judge_is(
      "echo '{\"outcome\":\"environment_error\",\"message\":\"no torch\",\"hints\":[\"get one\"],"
      "\"reward\":{\"value\":null}}'\nexit 3\n");
  auto const results = run({exploit("a"), exploit("b")});
  ASSERT_FALSE(results);
  EXPECT_EQ(results.error().outcome, Outcome::environment_error);
  EXPECT_EQ(results.error().message, "no torch");
  EXPECT_EQ(results.error().hints, std::vector<std::string>{"get one"});
}

TEST_F(RunCases, TriesAgainWhereTheMachineWasShortOfSomething) {
  judge_is("mkdir \"$(dirname \"$0\")/once\" 2>/dev/null || { " + says_wrong + "exit 6\n}\n" +
           "echo '{\"outcome\":\"environment_error\",\"message\":\"m\",\"reward\":{\"value\":null}}'\nexit 3\n");
  auto const results = run({exploit("a")});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(results->front().state, State::as_expected);
}

TEST_F(RunCases, AsksAgainWhereARatioMayBeChance) {
  judge_is(
      "echo x >> \"$(dirname \"$0\")/asked\"\n"
      "echo "
      "'{\"outcome\":\"pass\",\"message\":\"m\",\"reward\":{\"value\":1},\"speed\":{\"ratios\":[{\"baseline\":"
      "\"eager\","
      "\"ratio\":{\"low\":0.9,\"estimate\":1.3}}]}}'\n");
  auto bound = exploit("a");
  bound.expect.outcomes = {"pass"};
  bound.expect.exit_codes = {0};
  bound.expect.most_speedup = 1.2;
  auto const results = run({bound});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(m_ended, 1);
  EXPECT_EQ(util::read_file(at("asked"), 100).value_or(""), "x\nx\nx\n");
  EXPECT_EQ(results->front().problems, std::vector<std::string>{"1.30, 1.30, 1.30x eager, expected 1.2 at most"});
}

// A judge whose comparison can be switched off; the policy refuses nothing.
const std::string compares =
    "case \"$*\" in *'--without comparison'*) " + says_pass + "exit 0 ;; esac\n" + says_wrong + "exit 6\n";

TEST_F(RunCases, ProvesTheLayerThatCatches) {
  m_options.prove_layers = true;
  judge_is("echo \"$*\" >> \"$(dirname \"$0\")/asked\"\n" + compares);
  auto const results = run({exploit("a")});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(m_ended, 1);
  auto const& proof = results->front().proof;
  EXPECT_EQ(proof.state, Proof::State::proven) << util::join(proof.problems, ", ");
  ASSERT_TRUE(proof.through);
  EXPECT_EQ(proof.through->outcome, "pass");
  auto const asked = util::split_lines(util::read_file(at("asked"), 10'000).value_or(""));
  ASSERT_EQ(asked.size(), 3U) << "caught, by the policy alone, through";
  EXPECT_TRUE(asked[0].ends_with("--json --policy none")) << asked[0];
  EXPECT_TRUE(asked[1].ends_with("--json --without comparison")) << asked[1];
  EXPECT_TRUE(asked[2].ends_with("--json --without comparison --policy none")) << asked[2];
}

TEST_F(RunCases, SeesACaseThatAnotherLayerCatches) {
  m_options.prove_layers = true;
  judge_is(compares);
  auto one = exploit("a");
  one.layer = "seal";
  auto const results = run({one});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(results->front().state, State::as_expected) << "it is caught";
  EXPECT_EQ(results->front().proof.state, Proof::State::not_proven);
  EXPECT_EQ(
      results->front().proof.problems,
      std::vector<std::string>{
          "something else than seal catches it: with --without seal --policy none it is still wrong (exit code 6), m"});
}

TEST_F(RunCases, SaysWhichLayerCannotBeSwitchedOff) {
  m_options.prove_layers = true;
  judge_is(compares);
  auto one = exploit("a");
  one.layer = "sandbox";
  auto const results = run({one, honest("b")});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(results->front().proof.state, Proof::State::not_switchable);
  EXPECT_FALSE(results->front().proof.through);
  EXPECT_EQ(results->back().proof.state, Proof::State::not_tried);
}

TEST_F(RunCases, WhatIsBoundMustGainOnceItsLayerIsOff) {
  m_options.prove_layers = true;
  auto const ratio = [](const std::string& estimate) {
    return "echo "
           "'{\"outcome\":\"pass\",\"message\":\"m\",\"reward\":{\"value\":1},\"speed\":{\"ratios\":[{\"baseline\":"
           "\"eager\",\"ratio\":{\"low\":" +
           estimate + ",\"estimate\":" + estimate + "}}]}}'\nexit 0\n";
  };
  auto bound = exploit("a");
  bound.layer = "fresh-inputs";
  bound.expect.outcomes = {"pass"};
  bound.expect.exit_codes = {0};
  bound.expect.most_speedup = 1.2;
  judge_is("case \"$*\" in *fresh-inputs*) " + ratio("9.0") + ";; esac\n" + ratio("1.0"));
  auto results = run({bound});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(results->front().proof.state, Proof::State::proven);
  EXPECT_EQ(results->front().proof.gain, 9.0);
  judge_is(ratio("1.0"));
  results = run({bound});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(results->front().proof.problems,
            std::vector<std::string>{"1.00, 1.00, 1.00x eager, expected more than 1.2"});
}

TEST_F(RunCases, AProofThatTheMachineIsTooShortForIsNoneOfTheCase) {
  m_options.prove_layers = true;
  judge_is(
      "case \"$*\" in *'--without comparison --policy none'*) echo "
      "'{\"outcome\":\"environment_error\",\"message\":\"no memory\",\"reward\":{\"value\":null}}'; exit 3 ;; esac\n" +
      says_wrong + "exit 6\n");
  auto const results = run({exploit("a")});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(results->front().state, State::not_judged);
  EXPECT_EQ(results->front().answer.message, "no memory");
}

TEST_F(RunCases, KeepsWorkspacesWhenAsked) {
  judge_is(says_wrong + "exit 6\n");
  m_options.keep = true;
  auto const results = run({exploit("a")});
  ASSERT_TRUE(results) << results.error().message;
  auto const kept = results->front().kept;
  EXPECT_TRUE(fs::exists(kept / "model_new.py"));
  fs::remove_all(kept.parent_path());
}

}  // namespace

}  // namespace cuda_agent::selftest
