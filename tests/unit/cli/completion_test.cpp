#include "cli/completion.hpp"

#include <CLI/CLI.hpp>
#include <gtest/gtest.h>

#include "cli/commands.hpp"

namespace cuda_agent::cli {

namespace {

std::string script(Shell shell) {
  CLI::App app;
  Action action;
  setup_commands(app, action);
  return completion_script(app, shell);
}

}  // namespace

TEST(Completion, KnowsCommandsFlagsAndWordsInEveryShell) {
  for (auto const shell : {Shell::bash, Shell::zsh, Shell::fish}) {
    auto const text = script(shell);
    for (auto const* const part : {"verify", "require-speedup", "auto cuda cpu", "bash zsh fish"}) {
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
    }
    EXPECT_EQ(text.find("worker-module"), std::string::npos) << "internal";
  }
}

TEST(Completion, QuotesDescriptions) {
  EXPECT_NE(script(Shell::fish).find("-d 'Build the candidate\\'s kernels into cuda_extension'"), std::string::npos);
  EXPECT_NE(script(Shell::zsh).find("'compile:Build the candidate'\\''s kernels into cuda_extension'"),
            std::string::npos);
}

}  // namespace cuda_agent::cli
