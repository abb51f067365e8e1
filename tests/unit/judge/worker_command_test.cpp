#include "judge/worker_command.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "build/toolchain.hpp"

namespace cuda_agent::judge {
namespace {

exec::SandboxSupport bubblewrap() {
  exec::SandboxSupport support;
  support.bubblewrap = true;
  support.bubblewrap_path = "/usr/bin/bwrap";
  return support;
}

build::Interpreter interpreter_under(const std::filesystem::path& prefix) {
  build::Interpreter interpreter;
  interpreter.executable = prefix / "bin/python";
  interpreter.prefix = prefix;
  interpreter.base_prefix = "/usr";
  interpreter.torch_dir = prefix / "lib/python3/site-packages/torch";
  interpreter.library_dirs = {interpreter.torch_dir / "lib"};
  interpreter.search_path = {"/usr/lib/python3", prefix / "lib/python3/site-packages"};
  return interpreter;
}

WorkerCommand command_for(const build::Interpreter& interpreter, const exec::SandboxSupport& support,
                          Role role = Role::reference) {
  WorkerSetup setup;
  setup.role = role;
  setup.interpreter = &interpreter;
  setup.module_folder = "/module";
  setup.folder = "/folder";
  setup.cache = "/cache";
  return worker_command(setup, support);
}

// Inductor passes these to a compiler in a string that it splits at spaces.
TEST(WorkerCommand, NoFolderOfTheInterpreterHasASpaceInTheSandbox) {
  auto const interpreter = interpreter_under("/home/you/my clone/.venv");
  auto const made = command_for(interpreter, bubblewrap());
  auto const& argv = made.command.argv;
  EXPECT_EQ(argv.front().find(' '), std::string::npos) << argv.front();
  EXPECT_EQ(argv.back().find("my clone"), std::string::npos) << argv.back();
  ASSERT_TRUE(made.command.sandbox.has_value());
  auto const& binds = made.command.sandbox->binds;
  EXPECT_TRUE(std::any_of(binds.begin(), binds.end(), [&](const auto& bound) {
    return bound.source == interpreter.prefix && bound.target / "bin/python" == argv.front();
  }));
}

TEST(WorkerCommand, OtherwiseTheInterpreterIsWhereItIsOutside) {
  auto const interpreter = interpreter_under("/home/you/clone/.venv");
  EXPECT_EQ(command_for(interpreter, bubblewrap()).command.argv.front(), "/home/you/clone/.venv/bin/python");
}

TEST(WorkerCommand, WithoutASandboxNothingCanBeMoved) {
  auto const interpreter = interpreter_under("/home/you/my clone/.venv");
  EXPECT_EQ(command_for(interpreter, {}).command.argv.front(), "/home/you/my clone/.venv/bin/python");
}

// Inductor keeps precompiled headers in /tmp/torchinductor_<user>, and an ask's /tmp ends with it.
TEST(WorkerCommand, ThePrecompiledHeadersOfInductorOutliveTheReferenceWorkerOnly) {
  auto const interpreter = interpreter_under("/home/you/clone/.venv");
  auto const keeps = [](const WorkerCommand& made) {
    auto const& binds = made.command.sandbox->binds;
    return std::any_of(binds.begin(), binds.end(), [&](const auto& bound) {
      auto const user = made.command.env.find("LOGNAME");
      return user != made.command.env.end() && bound.target == "/tmp/torchinductor_" + user->second && bound.writable &&
             bound.source == std::filesystem::path("/cache") / inductor_headers;
    });
  };
  EXPECT_TRUE(keeps(command_for(interpreter, bubblewrap())));
  EXPECT_FALSE(keeps(command_for(interpreter, bubblewrap(), Role::candidate)));
}

TEST(WorkerCommand, OpenMpOfTheCandidatesOwnHasAsManyThreadsAsTorch) {
  auto const interpreter = interpreter_under("/home/you/clone/.venv");
  for (Role const role : {Role::reference, Role::candidate}) {
    WorkerSetup setup;
    setup.role = role;
    setup.interpreter = &interpreter;
    setup.threads = 3;
    auto const made = worker_command(setup, bubblewrap());
    EXPECT_EQ(made.command.env.at("OMP_NUM_THREADS"), "3");
    EXPECT_NE(made.command.argv.back().find("\"threads\":3"), std::string::npos) << made.command.argv.back();
  }
}

}  // namespace
}  // namespace cuda_agent::judge
