#include "exec/sandbox.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <gtest/gtest.h>
#include <unistd.h>

#include "shell.hpp"
#include "util/files.hpp"
#include "util/text.hpp"

namespace cuda_agent::exec {
namespace {

namespace fs = std::filesystem;

class Sandbox : public testing::Test {
 protected:
  void SetUp() override {
    auto const& support = probe_sandbox();
    if (!support.bubblewrap) GTEST_SKIP() << support.reason;
    auto made = util::TemporaryFolder::make(fs::temp_directory_path(), "sandbox-test-");
    ASSERT_TRUE(made);
    m_folder = std::move(*made);
  }

  static Command boxed(const std::string& script, SandboxPlan plan = {}) {
    Command command = shell(script);
    command.sandbox = std::move(plan);
    return command;
  }
  static std::string output_of(const Command& command) {
    auto const done = run(command, soon());
    return done ? done->output : done.error().message;
  }
  fs::path at(const char* name) const { return m_folder.path() / name; }

  util::TemporaryFolder m_folder;
};

TEST_F(Sandbox, TranslatesCodesAndSignals) {
  auto const code = run(boxed("exit 3"), soon());
  ASSERT_TRUE(code) << code.error().message;
  EXPECT_EQ(code->status.code, 3);
  auto const signal = run(boxed("kill -ABRT $$"), soon());
  ASSERT_TRUE(signal);
  EXPECT_EQ(signal->status.signal, SIGABRT);
}

TEST_F(Sandbox, HomesAndOtherFoldersOfTheHostAreAbsent) {
  EXPECT_EQ(output_of(boxed("ls -d /root /home /var /work /srv 2>/dev/null")), "");
  EXPECT_EQ(output_of(boxed("ls /tmp")), "home\n") << "the host's /tmp is seen";
}

TEST_F(Sandbox, HomeIsPrivateEmptyAndWritable) {
  EXPECT_EQ(output_of(boxed("echo $HOME; ls -A $HOME; touch $HOME/x && echo good")), "/tmp/home\ngood\n");
  SandboxPlan plan;
  plan.home = "/home/agent";
  EXPECT_EQ(output_of(boxed("echo $HOME; ls -A $HOME; touch $HOME/x && echo good", plan)), "/home/agent\ngood\n");
}

TEST_F(Sandbox, TheSystemCannotBeWritten) {
  EXPECT_EQ(output_of(boxed("for d in / /usr /etc /dev; do touch $d/x 2>/dev/null && echo $d; done; echo end")),
            "end\n");
}

TEST_F(Sandbox, ThereIsNoNetwork) {
  // Two lines of headings, and the loopback.
  EXPECT_EQ(output_of(boxed("sed 1,2d /proc/net/dev | sed 's/ *\\(.*\\):.*/\\1/'; sed 1d /proc/net/route")), "lo\n");
}

TEST_F(Sandbox, ItSeesNoProcessButItsOwn) {
  auto const count = util::trim(output_of(boxed("ls -d /proc/[0-9]* | wc -l")));
  EXPECT_LE(std::stoi(count), 6);
  EXPECT_EQ(output_of(boxed("hostname 2>/dev/null || cat /proc/sys/kernel/hostname")), "cuda-agent\n");
}

TEST_F(Sandbox, ItHasNoCapabilitiesAndCannotGainPrivileges) {
  EXPECT_EQ(output_of(boxed("grep -E '^Cap(Eff|Prm|Bnd)|^NoNew' /proc/self/status")),
            "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\n");
}

TEST_F(Sandbox, ABoundFolderIsReadOnlyUnlessSaidOtherwise) {
  ASSERT_TRUE(util::make_folders(at("in")));
  ASSERT_TRUE(util::make_folders(at("out")));
  ASSERT_TRUE(util::write_file(at("in") / "f", "input"));
  SandboxPlan plan;
  plan.binds = {{at("in"), {}, false, false}, {at("out"), "/results", true, false}};
  std::string const in = at("in").string();
  EXPECT_EQ(
      output_of(boxed("cat " + in + "/f; touch " + in + "/g 2>/dev/null && echo bad; echo result > /results/r", plan)),
      "input");
  EXPECT_EQ(util::read_file(at("out") / "r", 100), "result\n");
  EXPECT_FALSE(fs::exists(at("in") / "g"));
}

TEST_F(Sandbox, OnlyWhatIsBoundOfATemporaryFolderIsSeen) {
  ASSERT_TRUE(util::make_folders(at("seen")));
  ASSERT_TRUE(util::make_folders(at("secret")));
  SandboxPlan plan;
  plan.binds = {{at("seen"), {}, false, false}};
  EXPECT_EQ(output_of(boxed("ls " + m_folder.path().string(), plan)), "seen\n");
}

TEST_F(Sandbox, NestedBindsWorkInAnyOrder) {
  ASSERT_TRUE(util::make_folders(at("outer") / "inner"));
  ASSERT_TRUE(util::make_folders(at("other")));
  ASSERT_TRUE(util::write_file(at("other") / "f", "from other"));
  SandboxPlan plan;
  plan.binds = {{at("other"), at("outer") / "inner", true, false}, {at("outer"), {}, false, false}};
  EXPECT_EQ(output_of(boxed("cat " + (at("outer") / "inner" / "f").string(), plan)), "from other");
}

TEST_F(Sandbox, AFileRenamedInLaterIsSeen) {
  ASSERT_TRUE(util::make_folders(at("box")));
  SandboxPlan plan;
  plan.binds = {{at("box"), "/box", false, false}};
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  Command command = boxed("read go <&3; cat /box/late", plan);
  command.inherit = {{ends[0], 3}};
  auto child = spawn(command);
  ASSERT_TRUE(child) << child.error().message;
  ASSERT_TRUE(util::write_file(at("box") / "late", "here"));
  ASSERT_EQ(::write(ends[1], "\n", 1), 1);
  ASSERT_TRUE((*child)->wait(soon()));
  EXPECT_EQ((*child)->output().text(), "here");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Sandbox, WhatIsMissingIsLeftOutOrNamed) {
  SandboxPlan plan;
  plan.binds = {{at("none"), {}, false, true}};
  EXPECT_EQ(output_of(boxed("echo good", plan)), "good\n");
  plan.binds.front().optional = false;
  auto const child = spawn(boxed("echo good", plan));
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().outcome, Outcome::environment_error);
  EXPECT_NE(child.error().message.find(at("none").string()), std::string::npos);
}

TEST_F(Sandbox, ADeviceNodeIsBound) {
  SandboxPlan plan;
  plan.device_nodes = {"/dev/full"};
  EXPECT_EQ(output_of(boxed("test -c /dev/full && echo good", plan)), "good\n");
}

TEST_F(Sandbox, ThePrivateTmpIsLimited) {
  if (!probe_sandbox().tmpfs_size) GTEST_SKIP() << "this bubblewrap cannot limit a tmpfs";
  SandboxPlan plan;
  plan.tmpfs_bytes = 1 << 20;
  EXPECT_EQ(output_of(boxed(
                "for d in /tmp /dev/shm; do head -c 3000000 /dev/zero 2>/dev/null > $d/x || echo full; done", plan)),
            "full\nfull\n");
}

TEST_F(Sandbox, OnlyNamedDescriptorsAreThere) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  Command command = boxed("exec ls /proc/self/fd");
  command.inherit = {{ends[0], 5}};
  EXPECT_EQ(output_of(command), "0\n1\n2\n3\n5\n") << "3 is the folder that ls reads";
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Sandbox, TheFolderIsTheNamedOneInside) {
  Command command = boxed("pwd");
  command.cwd = "/tmp";
  EXPECT_EQ(output_of(command), "/tmp\n");
}

TEST_F(Sandbox, ACommandThatNeverRanIsTheEnvironmentsFault) {
  Command command = boxed("");
  command.argv = {"/no/such/python"};
  auto const done = run(command, soon());
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().outcome, Outcome::environment_error);
  EXPECT_NE(done.error().message.find("/no/such/python"), std::string::npos) << done.error().message;
}

TEST_F(Sandbox, KillTakesItsWholePidNamespace) {
  std::string const span = own_sleep();
  auto child = spawn(boxed("setsid sleep " + span + " & (setsid sleep " + span + " &); echo up; sleep " + span));
  ASSERT_TRUE(child);
  while ((*child)->output().head != "up\n") {
    auto const status = (*child)->wait(util::Deadline::after(std::chrono::milliseconds(10)));
    ASSERT_FALSE(status) << status->describe();
  }
  (*child)->kill();
  EXPECT_FALSE(somebody_runs(span));
}

TEST_F(Sandbox, DaemonsEndWithTheCommand) {
  std::string const span = own_sleep();
  auto const done = run(boxed("(setsid sleep " + span + " &); echo done"), soon());
  ASSERT_TRUE(done);
  EXPECT_EQ(done->output, "done\n");
  EXPECT_FALSE(somebody_runs(span));
}

// A process of root's is the owner of these, whatever capabilities it lacks.
TEST_F(Sandbox, TheKernelsSettingsAreReadOnly) {
  EXPECT_EQ(
      output_of(boxed("for f in /proc/sys/kernel/core_pattern /proc/sys/vm/swappiness /proc/self/comm; do "
                      "( : >> $f ) 2>/dev/null && echo $f; done; cat /proc/sys/vm/swappiness >/dev/null && echo ok")),
      "ok\n");
}

TEST_F(Sandbox, WhatOnlyRootMayReadIsHidden) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can read it outside";
  std::string const first = "f=$(find /etc -type f ! -perm -o+r | head -n 1); ";
  if (output_of(shell(first + "echo $f")) == "\n") GTEST_SKIP() << "every file of /etc is for everybody here";
  std::string const name = util::trim(output_of(shell(first + "echo $f")));
  EXPECT_EQ(output_of(shell("cat " + name + " >/dev/null && echo read")), "read\n");
  EXPECT_EQ(output_of(boxed("cat " + name + " >/dev/null 2>&1 && echo read; cat /etc/passwd >/dev/null && echo good")),
            "good\n");
}

TEST_F(Sandbox, ProtectionsSayWhatIsInForce) {
  auto const all = protections(probe_sandbox());
  auto const named = [&](const char* name) {
    return std::find_if(all.begin(), all.end(), [&](auto const& p) { return p.name == name; });
  };
  ASSERT_NE(named("network"), all.end());
  EXPECT_TRUE(named("network")->in_force);
  // What a worker puts on itself is known once it has: the judge says so (tests/e2e/test_seal.py).
  EXPECT_EQ(named("system-call filter"), all.end());
}

// The probe is made once a process, so these run in processes of their own.
TEST(SandboxDeathTest, CanBeSwitchedOffByTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::setenv("CUDA_AGENT_SANDBOX", "none", 1);
        auto const& support = probe_sandbox();
        Command command = shell("true");
        command.sandbox = SandboxPlan{};
        auto const refused = spawn(command);
        bool const good = !support.bubblewrap && support.reason.find("CUDA_AGENT_SANDBOX") != std::string::npos &&
                          !refused && refused.error().outcome == Outcome::environment_error &&
                          !protections(support).front().in_force;
        std::_Exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(SandboxDeathTest, SaysWhatToInstall) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        ::unsetenv("CUDA_AGENT_SANDBOX");
        ::setenv("PATH", "/no/such/folder", 1);
        auto const& support = probe_sandbox();
        std::_Exit(!support.bubblewrap && support.reason.find("install bubblewrap") != std::string::npos ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(SandboxDeathTest, SaysWhatAFailedTrialSaid) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto const folder = util::TemporaryFolder::make(fs::temp_directory_path(), "sandbox-test-");
  ASSERT_TRUE(folder);
  ASSERT_TRUE(util::write_file(folder->path() / "bwrap", "#!/bin/sh\necho 'bwrap: No permissions'; exit 1\n"));
  fs::permissions(folder->path() / "bwrap", fs::perms::owner_all);
  EXPECT_EXIT(
      {
        ::unsetenv("CUDA_AGENT_SANDBOX");
        ::setenv("PATH", folder->path().c_str(), 1);
        auto const& support = probe_sandbox();
        bool const good = !support.bubblewrap && support.reason.find("No permissions") != std::string::npos;
        std::_Exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace cuda_agent::exec
