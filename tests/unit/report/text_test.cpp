#include "report/text.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace cuda_agent::report {

namespace {

std::string text_of(const Verdict& verdict, bool verbose = false, bool colour = false) {
  TextStyle style;
  style.verbose = verbose;
  style.colour = colour;
  return render_text(verdict, style);
}

testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in:\n" << text;
}

testing::AssertionResult lacks(const std::string& text, const std::string& part) {
  if (text.find(part) == std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is in:\n" << text;
}

Verdict passed() {
  Verdict verdict;
  verdict.command = "run";
  verdict.workspace = "agent_workdir";
  verdict.message = "correct on 5 of 5 inputs, and faster than eager and compiled";
  verdict.reward = {3, false, "more than 5 % faster than eager and compiled", "interval"};
  BuildReport build;
  build.device = "cpu";
  build.architecture = "x86_64";
  build.seconds = 3.21;
  build.objects = {{"kernels/a_cpu.cpp", "host", 1.5, false, {}}, {"kernels/a_binding.cpp", "host", 0, true, {}}};
  verdict.build = build;
  Correctness check;
  check.trials = check.passed = 5;
  check.timed_compared = 24;
  check.tolerances["float32"] = {1e-2, 1e-2};
  check.worst = ElementDifference{"output[0]", {3, 5}, "1", "1.0000001", 1.2e-7, 1.2e-7, 2};
  verdict.correctness = check;
  Speed speed;
  speed.mode = "answer";
  speed.rounds = 8;
  speed.calls_per_round = 1;
  speed.arms = {{"eager", Interval{1230, 1210, 1250}, 8, 3.0},
                {"compiled", Interval{640, 630, 650}, 8, 3.0},
                {"candidate", Interval{530, 528, 533}, 8, 3.0}};
  speed.ratios = {{"eager", {2.321, 2.28, 2.36}, 0.995}, {"compiled", {1.21, 1.19, 1.22}, 0.995}};
  verdict.speed = speed;
  verdict.protections = {{"sandbox", true, "bubblewrap"}};
  return verdict;
}

}  // namespace

TEST(TextReport, ShowsAPassOnOneScreen) {
  EXPECT_EQ(text_of(passed()),
            "PASS  run agent_workdir\n"
            "  correct on 5 of 5 inputs, and faster than eager and compiled\n"
            "  build    2 objects, 1 cached · cpu x86_64 · 3.21 s\n"
            "  check    5 of 5 correct · largest error 1.2e-07 at output[0][3, 5] · 24 timed calls compared\n"
            "           tolerance: float32 rtol 0.01, atol 0.01\n"
            "  speed    arm             time  interval           candidate is faster by\n"
            "           eager        1.23 ms  1.21 – 1.25 ms     2.32x (2.28x to 2.36x)\n"
            "           compiled      640 µs  630 – 650 µs       1.21x (1.19x to 1.22x)\n"
            "           candidate     530 µs  528 – 533 µs\n"
            "           8 rounds · intervals hold with 99.5 %\n"
            "  reward   3 (provisional): more than 5 % faster than eager and compiled\n");
}

TEST(TextReport, NamesIndexAndValuesOfAWrongResult) {
  auto verdict = passed();
  verdict.outcome = Outcome::wrong;
  verdict.fault = Fault::candidate;
  verdict.speed.reset();
  verdict.correctness->passed = 2;
  verdict.correctness->mismatch = "output[0] differs in 3 of 64 elements";
  verdict.correctness->first_mismatch = ElementDifference{"output[0]", {0, 7}, "1.5", "0.25", 1.25, 0.83, 3};
  verdict.reward = {-1, false, "wrong", "interval"};
  auto const text = text_of(verdict);
  EXPECT_TRUE(has(text, "WRONG  run agent_workdir  fault: candidate, exit code 6\n"));
  EXPECT_TRUE(has(text, "2 of 5 correct"));
  EXPECT_TRUE(has(text, "first difference: output[0][0, 7], trial 3: expected 1.5, got 0.25 (off by 1.2)"));
  EXPECT_TRUE(has(text, "output[0] differs in 3 of 64 elements"));
  EXPECT_TRUE(has(text, "reward   -1 (provisional): wrong"));
}

TEST(TextReport, ShowsACompileErrorWithItsPlaceAndSourceLine) {
  Verdict verdict;
  verdict.command = "compile";
  verdict.outcome = Outcome::compile_error;
  verdict.fault = Fault::candidate;
  verdict.message = "kernels/a.cu does not compile";
  verdict.detail = "everything that nvcc said";
  BuildReport build;
  build.device = "cuda";
  build.architecture = "sm_90a";
  Diagnostic const error{"kernels/a.cu", 12, 5, "error", "expected a ';'", "compile"};
  Diagnostic const warning{"kernels/a.cu", 3, 1, "warning", "unused variable", "compile"};
  build.objects = {{"kernels/a.cu", "nvcc", 0.4, false, {warning, error}}};
  verdict.build = build;
  TextStyle style;
  style.source_line = [](const std::string& file, int line) {
    return file == "kernels/a.cu" && line == 12 ? std::optional<std::string>("    float x") : std::nullopt;
  };
  auto const text = render_text(verdict, style);
  EXPECT_TRUE(has(text, "COMPILE ERROR"));
  EXPECT_TRUE(has(text, "error    kernels/a.cu:12:5: expected a ';'\n        12 |     float x\n           |     ^\n"));
  EXPECT_TRUE(has(text, "1 warning or note; -v shows it"));
  EXPECT_TRUE(lacks(text, "unused variable"));
  EXPECT_TRUE(lacks(text, "everything that nvcc said")) << "the diagnostics say it already";
  EXPECT_TRUE(has(text_of(verdict, true), "unused variable"));
}

TEST(TextReport, TellsWhatToDoAboutTheEnvironment) {
  Verdict verdict;
  verdict.command = "run";
  verdict.workspace = "w";
  verdict.outcome = Outcome::environment_error;
  verdict.fault = Fault::environment;
  verdict.message = "no Python interpreter with torch was found";
  verdict.hints = {"install torch", "or give --python FILE"};
  EXPECT_EQ(text_of(verdict),
            "ENVIRONMENT ERROR  run w  fault: environment, exit code 3\n"
            "  no Python interpreter with torch was found\n"
            "  next     install torch\n"
            "           or give --python FILE\n");
}

// `profile` makes no trials: what it checks are its timed calls.
TEST(TextReport, SaysWhetherTheTimedCallsWereRightWhereThereWereNoTrials) {
  auto verdict = passed();
  verdict.correctness->trials = 0;
  verdict.correctness->passed = 0;
  EXPECT_TRUE(has(text_of(verdict), "check    every timed call is correct"));
  verdict.outcome = Outcome::wrong;
  verdict.correctness->mismatch = "output[0] differs in 3 of 64 elements";
  auto const text = text_of(verdict);
  EXPECT_TRUE(has(text, "check    a timed call is wrong"));
  EXPECT_TRUE(lacks(text, "every timed call is correct"));
}

TEST(TextReport, WarnsOnceForEachProtectionThatIsNotInForce) {
  auto verdict = passed();
  verdict.protections.push_back({"seccomp", false, "the kernel lacks it"});
  verdict.task_findings = {{"degenerate", "zeros pass"}};
  auto const text = text_of(verdict);
  EXPECT_TRUE(
      has(text, "warning  task is degenerate: zeros pass\n           not in force: seccomp: the kernel lacks it\n"));
  EXPECT_TRUE(lacks(text, "bubblewrap"));
}

TEST(TextReport, NamesProtectionsThatLackForOneReasonInOneLine) {
  auto verdict = passed();
  verdict.protections.push_back({"namespaces", false, "no bubblewrap"});
  verdict.protections.push_back({"seccomp", false, "the kernel lacks it"});
  verdict.protections.push_back({"network", false, "no bubblewrap"});
  EXPECT_TRUE(has(text_of(verdict),
                  "not in force: namespaces, network: no bubblewrap\n"
                  "           not in force: seccomp: the kernel lacks it\n"));
}

TEST(TextReport, QuotesTheCandidateAndLetsNoEscapeThrough) {
  auto verdict = passed();
  verdict.candidate_output = "\033[2Jhello\nPASS";
  auto const text = text_of(verdict);
  EXPECT_TRUE(has(text, "  the candidate printed\n    | \\x1b[2Jhello\n    | PASS\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\033'), 0);
}

TEST(TextReport, CutsLongOutputUnlessVerbose) {
  auto verdict = passed();
  for (int i = 0; i < 100; ++i) verdict.candidate_output += "line " + std::to_string(i) + "\n";
  auto const text = text_of(verdict);
  EXPECT_TRUE(has(text, "    | … 88 lines left out; -v shows them …\n    | line 92\n"));
  EXPECT_TRUE(has(text, "line 99"));
  EXPECT_TRUE(has(text_of(verdict, true), "line 50"));
}

TEST(TextReport, ColoursOnlyWhenAsked) {
  EXPECT_TRUE(has(text_of(passed(), false, true), "\033[1;32mPASS\033[0m"));
  auto const plain = text_of(passed());
  EXPECT_EQ(std::count(plain.begin(), plain.end(), '\033'), 0);
}

TEST(TextReport, ShowsRegistersOnCompileAndSpillsAlways) {
  auto verdict = passed();
  KernelResources const lean{"lean(float*)", "sm_90a", 32, 0, 0, 0, 128};
  KernelResources const spilling{"big(float*)", "sm_90a", 255, 16, 24, 32, 0};
  verdict.build->kernels = {lean, spilling};
  auto text = text_of(verdict);
  EXPECT_TRUE(lacks(text, "lean"));
  EXPECT_TRUE(has(text, "big(float*): 255 registers, 0 bytes shared, spills 16 bytes stored, 24 loaded"));
  verdict.command = "compile";
  verdict.build->extension_path = "/w/.cuda-agent/build/cuda_extension.so";
  text = text_of(verdict);
  EXPECT_TRUE(has(text, "lean(float*): 32 registers, 128 bytes shared, no spills"));
  EXPECT_TRUE(has(text, "/w/.cuda-agent/build/cuda_extension.so"));
}

}  // namespace cuda_agent::report
