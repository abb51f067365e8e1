#include "cli/flags.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cuda_agent::cli {

namespace {

/// All flags of `run` over one judge::Options.
struct Line {
  CLI::App app;
  judge::Options options;

  Line() {
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    add_build_flags(app, options);
    add_check_flags(app, options);
    add_speed_flags(app, options);
    add_device_flags(app, options);
    add_timeout_flag(app, options.timeout);
  }
  bool parses(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    try {
      app.parse(words);
      return true;
    } catch (const CLI::ParseError& error) {
      message = error.what();
      return false;
    }
  }
  std::string message;
};

}  // namespace

TEST(Flags, ASizeHasAUnitAndIsCountedInBytes) {
  for (auto const& [text, bytes] : {std::pair{"8GB", 8'000'000'000ULL},
                                    {"1.5GB", 1'500'000'000ULL},
                                    {"512MiB", 536'870'912ULL},
                                    {"1B", 1ULL},
                                    {"2TiB", 2'199'023'255'552ULL}}) {
    Line line;
    EXPECT_TRUE(line.parses({"--gpu-memory", text})) << line.message;
    EXPECT_EQ(line.options.gpu_memory, bytes) << text;
  }
}

TEST(Flags, WhatIsNoSizeIsRefused) {
  for (const char* text : {"8", "GB", "-8GB", "0GB", "8 GB", "8gb", "1e3MB", "1.2.3GB", "9999999999TB", "nanGB", ""}) {
    Line line;
    EXPECT_FALSE(line.parses({"--gpu-memory", text})) << text;
    EXPECT_EQ(line.options.gpu_memory, 0U) << text;
  }
}

TEST(Flags, ReachTheJudge) {
  Line line;
  ASSERT_TRUE(line.parses({"--trials",
                           "7",
                           "--seed",
                           "18446744073709551615",
                           "--rtol=1e-3",
                           "--atol",
                           "0",
                           "--contract",
                           "kernelbench",
                           "--keep-going",
                           "--baseline",
                           "eager",
                           "--compile-mode",
                           "max-autotune",
                           "--require-speedup",
                           "1.5",
                           "--device",
                           "cpu",
                           "--gpu",
                           "1",
                           "--python",
                           "/p",
                           "--arch",
                           "90a",
                           "--timeout",
                           "12.5",
                           "--call-timeout",
                           "3"}))
      << line.message;
  auto const& options = line.options;
  EXPECT_EQ(options.trials, 7);
  EXPECT_EQ(options.seed, 18446744073709551615U);
  EXPECT_EQ(options.rtol, 1e-3);
  EXPECT_EQ(options.atol, 0.0);
  EXPECT_EQ(options.contract, judge::Contract::kernelbench);
  EXPECT_TRUE(options.keep_going);
  EXPECT_EQ(options.baseline, judge::Baseline::eager);
  EXPECT_EQ(options.compile_mode, "max-autotune");
  EXPECT_EQ(options.require_speedup, 1.5);
  EXPECT_EQ(options.device, judge::Device::cpu);
  EXPECT_EQ(options.gpu, "1");
  EXPECT_EQ(options.python, "/p");
  EXPECT_EQ(options.architecture, "90a");
  EXPECT_EQ(options.timeout, 12.5);
  EXPECT_EQ(options.call_timeout, 3.0);
}

TEST(Flags, LeaveTheDefaultsAlone) {
  Line line;
  ASSERT_TRUE(line.parses({}));
  EXPECT_EQ(line.options.trials, 5);
  EXPECT_FALSE(line.options.seed);
  EXPECT_FALSE(line.options.rtol);
  EXPECT_EQ(line.options.device, judge::Device::automatic);
  EXPECT_EQ(line.options.baseline, judge::Baseline::both);
  EXPECT_FALSE(line.options.require_speedup);
}

TEST(Flags, TheLastOfARepeatedFlagCounts) {
  Line line;
  ASSERT_TRUE(line.parses({"--trials", "3", "--trials", "9"})) << line.message;
  EXPECT_EQ(line.options.trials, 9);
}

TEST(Flags, RefuseValuesOutOfRange) {
  for (auto const& words : std::vector<std::vector<std::string>>{{"--trials", "0"},
                                                                 {"--trials", "3.5"},
                                                                 {"--trials", "99999999999999999999"},
                                                                 {"--seed", "-1"},
                                                                 {"--seed", "18446744073709551616"},
                                                                 {"--rtol", "nan"},
                                                                 {"--rtol", "-1e-3"},
                                                                 {"--atol", "inf"},
                                                                 {"--timeout", "0"},
                                                                 {"--timeout", "1e99"},
                                                                 {"--require-speedup", "0"},
                                                                 {"--require-speedup", "fast"},
                                                                 {"--device", "gpu"},
                                                                 {"--trials"}}) {
    Line line;
    EXPECT_FALSE(line.parses(words)) << words.front() << " " << words.back();
  }
}

TEST(Flags, WholeNumbersAreDecimal) {
  Line line;
  ASSERT_TRUE(line.parses({"--trials", "010"})) << line.message;
  EXPECT_EQ(line.options.trials, 10);
}

TEST(Flags, SuggestTheWordThatWasMeant) {
  Line line;
  EXPECT_FALSE(line.parses({"--contract", "kernelbnech"}));
  EXPECT_NE(line.message.find("did you mean 'kernelbench'?"), std::string::npos) << line.message;
}

}  // namespace cuda_agent::cli
