#include "policy/python_rules.hpp"

#include <chrono>

#include <gtest/gtest.h>

#include "util/environment.hpp"
#include "util/files.hpp"

namespace cuda_agent::policy {
namespace {

namespace fs = std::filesystem;

constexpr const char* honest = R"(import torch.nn as nn
import cuda_extension

class ModelNew(nn.Module):
    def forward(self, x):
        return cuda_extension.relu(x)
)";

constexpr const char* cheating = R"(import torch
import torch.nn as nn
import cuda_extension

class ModelNew(nn.Module):
    def _helper(self, x):
        return torch.relu(x)  # by torch

    def forward(self, x):
        return self._helper(cuda_extension.relu(x))
)";

class PythonRules : public testing::Test {
 protected:
  void SetUp() override {
    auto folder = util::TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-test-");
    ASSERT_TRUE(folder);
    m_folder = std::move(*folder);
    auto const python = util::find_executable("python3");
    ASSERT_TRUE(python) << "these tests need python3 on PATH";
    m_request.interpreter = *python;
    m_request.rules = POLICY_TEST_RULES;
    m_request.config = POLICY_TEST_CONFIG;
    m_request.file = at("model_new.py");
  }

  fs::path at(const char* name) const { return m_folder.path() / name; }

  Result<std::vector<Finding>> check(const std::string& text) const {
    EXPECT_TRUE(util::write_file(m_request.file, text));
    return check_python(m_request, util::Deadline::after(std::chrono::seconds(60)));
  }

  /// A checker that does what `script` says, for faults that ours must not have.
  Result<std::vector<Finding>> check_by(const std::string& script) {
    m_request.rules = at("rules");
    fs::create_directories(m_request.rules);
    EXPECT_TRUE(util::write_file(m_request.rules / "cuda_agent_rules.py", script));
    return check(honest);
  }

  PythonCheck m_request;

 private:
  util::TemporaryFolder m_folder;
};

const std::string says_ready = "print('cuda-agent-rules: ready', flush=True)\n";

TEST_F(PythonRules, FindNothingInAnHonestFile) {
  auto const findings = check(honest);
  ASSERT_TRUE(findings) << findings.error().message << findings.error().detail;
  EXPECT_TRUE(findings->empty()) << findings->front().message;
}

TEST_F(PythonRules, SayWhatWhereAndHowItIsReached) {
  auto const findings = check(cheating);
  ASSERT_TRUE(findings) << findings.error().message << findings.error().detail;
  ASSERT_EQ(findings->size(), 1U);
  auto const& finding = findings->front();
  EXPECT_EQ(finding.rule, "torch-compute");
  EXPECT_EQ(finding.file, "model_new.py");
  EXPECT_EQ(finding.line, 7);
  EXPECT_EQ(finding.column, 16);
  EXPECT_EQ(finding.reached, "forward → _helper → torch.relu");
  EXPECT_EQ(finding.source, "return torch.relu(x)  # by torch");
  EXPECT_NE(finding.message.find("torch.relu"), std::string::npos) << finding.message;
  EXPECT_FALSE(finding.hint.empty());
}

TEST_F(PythonRules, NeverRunTheJudgedFile) {
  auto const marker = at("ran");
  ASSERT_TRUE(check("open('" + marker.string() + "', 'w')\n" + honest));
  EXPECT_FALSE(fs::exists(marker));
}

TEST_F(PythonRules, NeverImportWhatLiesBesideTheFile) {
  auto const marker = at("ran");
  ASSERT_TRUE(util::write_file(at("ast.py"), "open('" + marker.string() + "', 'w')\n"));
  auto const findings = check(honest);
  ASSERT_TRUE(findings);
  EXPECT_TRUE(findings->empty());
  EXPECT_FALSE(fs::exists(marker));
}

TEST_F(PythonRules, EscapeWhatTheFileSays) {
  auto const findings = check("x = 1 if  # \x1b[2J \xe2\x80\xae\n");
  ASSERT_TRUE(findings) << findings.error().message;
  ASSERT_EQ(findings->size(), 1U);
  EXPECT_EQ(findings->front().rule, "unreadable");
  EXPECT_EQ(findings->front().source.find('\x1b'), std::string::npos);
  EXPECT_NE(findings->front().source.find("\\x1b"), std::string::npos) << findings->front().source;
}

TEST_F(PythonRules, ACrashIsTheCandidatesFault) {
  auto const findings = check_by(says_ready + "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n");
  ASSERT_TRUE(findings) << findings.error().message;
  ASSERT_EQ(findings->size(), 1U);
  EXPECT_EQ(findings->front().rule, cannot_be_checked);
  EXPECT_NE(findings->front().message.find("SIGSEGV"), std::string::npos) << findings->front().message;
}

TEST_F(PythonRules, AnEndlessCheckIsTheCandidatesFault) {
  m_request.seconds = 0.5;
  auto const findings = check_by(says_ready + "while True: pass\n");
  ASSERT_TRUE(findings) << findings.error().message;
  ASSERT_EQ(findings->size(), 1U);
  EXPECT_EQ(findings->front().rule, cannot_be_checked);
}

TEST_F(PythonRules, ProcessorTimeIsLimited) {
  m_request.cpu_seconds = 1;
  auto const findings = check_by(says_ready + "while True: pass\n");
  ASSERT_TRUE(findings) << findings.error().message;
  ASSERT_EQ(findings->size(), 1U);
  EXPECT_NE(findings->front().message.find("killed by"), std::string::npos) << findings->front().message;
}

TEST_F(PythonRules, MemoryIsLimited) {
  m_request.address_space = std::uint64_t{256} << 20;
  auto const findings = check_by(says_ready + "x = bytearray(1 << 30)\n");
  ASSERT_TRUE(findings) << findings.error().message;
  ASSERT_EQ(findings->size(), 1U);
  EXPECT_EQ(findings->front().rule, cannot_be_checked);
}

TEST_F(PythonRules, TheCallersDeadlineIsNotTheCandidatesFault) {
  ASSERT_TRUE(util::write_file(m_request.file, honest));
  auto const findings = check_python(m_request, util::Deadline::after(std::chrono::seconds(0)));
  ASSERT_FALSE(findings);
  EXPECT_EQ(findings.error().outcome, Outcome::timeout);
}

TEST_F(PythonRules, WhatFailsBeforeTheFileIsOpenedIsTheEnvironmentsFault) {
  auto const findings = check_by("raise SystemExit('no such luck')\n");
  ASSERT_FALSE(findings);
  EXPECT_EQ(findings.error().outcome, Outcome::environment_error);
  EXPECT_NE(findings.error().detail.find("no such luck"), std::string::npos) << findings.error().detail;
}

TEST_F(PythonRules, AMissingInterpreterIsTheEnvironmentsFault) {
  for (auto const* const path : {"/no/such/python", "python3-that-is-not-there", "/etc/passwd"}) {
    m_request.interpreter = path;
    auto const findings = check(honest);
    ASSERT_FALSE(findings) << path;
    EXPECT_EQ(findings.error().outcome, Outcome::environment_error);
    EXPECT_NE(findings.error().message.find(path), std::string::npos) << findings.error().message;
  }
}

TEST_F(PythonRules, ABrokenConfigurationIsTheEnvironmentsFault) {
  m_request.config = at("policy.json");
  ASSERT_TRUE(util::write_file(m_request.config, "{}"));
  auto const findings = check(honest);
  ASSERT_FALSE(findings);
  EXPECT_EQ(findings.error().outcome, Outcome::environment_error);
}

TEST_F(PythonRules, AnAnswerThatIsNotUnderstoodIsOurFault) {
  for (auto const* const answer :
       {"", "print('nothing marked')", "print('cuda-agent-rules: {')", "print('cuda-agent-rules: []')",
        "print('cuda-agent-rules: {}')", R"(print('cuda-agent-rules: {"findings": 3}'))",
        R"(print('cuda-agent-rules: {"findings": [{"rule": "x"}]}'))",
        R"(print('cuda-agent-rules: {"findings": [{"rule": "", "message": "m", "reached": "", "hint": "",)"
        R"( "source": "", "line": 1, "column": 1}]}'))",
        R"(print('cuda-agent-rules: {"findings": [{"rule": "x", "message": "m", "reached": "", "hint": "",)"
        R"( "source": "", "line": -1, "column": 1}]}'))",
        "print('cuda-agent-rules: ' + '[' * 100000)"}) {
    auto const findings = check_by(says_ready + answer + "\n");
    ASSERT_FALSE(findings) << answer;
    EXPECT_EQ(findings.error().outcome, Outcome::internal_error) << answer;
  }
}

TEST_F(PythonRules, RunInASandboxThatShowsNothingElse) {
  auto const& support = exec::probe_sandbox();
  if (!support.bubblewrap) GTEST_SKIP() << support.reason;
  m_request.interpreter = "/usr/bin/python3";
  if (!fs::exists(m_request.interpreter)) GTEST_SKIP() << "no Python in the system base";
  m_request.sandbox = exec::SandboxPlan{};
  auto const findings = check(cheating);
  ASSERT_TRUE(findings) << findings.error().message << findings.error().detail;
  ASSERT_EQ(findings->size(), 1U);
  EXPECT_EQ(findings->front().line, 7);
}

}  // namespace
}  // namespace cuda_agent::policy
