#include "build/nvcc_plan.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "unit/build/sample.hpp"

namespace cuda_agent::build {
namespace {

using Words = std::vector<std::string>;

DryRun dry_run() {
  return {test::captured("nvcc_dryrun_13_0.txt"),
          {"kernels/probe.cu", "/probe", "/probe/object.o", "/probe"},
          "/usr/bin/g++",
          "/usr/local/cuda/bin/nvcc"};
}

// The dry run with one place of its text replaced.
DryRun changed(const std::string& from, const std::string& to) {
  auto run = dry_run();
  auto const at = run.text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) run.text.replace(at, from.size(), to);
  return run;
}

bool has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const NvccNames axpby_names = {"kernels/axpby.cu", "/source", "/out/object.o", "/out"};

TEST(NvccPlan, ADryRunOfNvcc13IsUnderstood) {
  auto const understood = understand(dry_run());
  ASSERT_TRUE(understood.plan) << understood.why_not;
  auto const& plan = *understood.plan;
  EXPECT_EQ(plan.argv(NvccStep::preprocess_device, axpby_names).front(), "/usr/bin/g++");
  EXPECT_EQ(plan.argv(NvccStep::cudafe, axpby_names).front(), "/usr/local/cuda/bin/cudafe++");
  EXPECT_EQ(plan.argv(NvccStep::cicc, axpby_names).front(), "/usr/local/cuda/nvvm/bin/cicc");
  EXPECT_EQ(plan.argv(NvccStep::ptxas, axpby_names),
            (Words{"/usr/local/cuda/bin/ptxas", "-arch=sm_90a", "-m64", "-v", "/out/tmpxft-6_axpby.ptx", "-o",
                   "/out/tmpxft-8_axpby.cubin"}));
  EXPECT_EQ(plan.argv(NvccStep::fatbinary, axpby_names).back(), "--embedded-fatbin=/out/tmpxft-3_axpby.fatbin.c");
  EXPECT_EQ(plan.argv(NvccStep::compile_host, axpby_names).back(), "/out/object.o");
}

TEST(NvccPlan, TheNamesOfTheProbeAreReplacedEverywhere) {
  auto const understood = understand(dry_run());
  ASSERT_TRUE(understood.plan) << understood.why_not;
  for (std::size_t i = 0; i < nvcc_steps; ++i) {
    for (auto const& word : understood.plan->argv(static_cast<NvccStep>(i), axpby_names)) {
      EXPECT_EQ(word.find("probe"), std::string::npos) << word;
    }
  }
  auto const cudafe = understood.plan->argv(NvccStep::cudafe, axpby_names);
  EXPECT_TRUE(has(cudafe, "kernels/axpby.cu"));
  EXPECT_TRUE(has(cudafe, "/source/kernels/axpby.cu"));
  EXPECT_TRUE(has(cudafe, "tmpxft-6_axpby.cudafe1.stub.c"));
}

TEST(NvccPlan, TheToolsGetTheEnvironmentThatNvccSets) {
  auto const understood = understand(dry_run());
  ASSERT_TRUE(understood.plan) << understood.why_not;
  EXPECT_EQ(understood.plan->environment.at("NVVMIR_LIBRARY_DIR"), "/usr/local/cuda/bin/../nvvm/libdevice");
  EXPECT_EQ(understood.plan->environment.at("LD_LIBRARY_PATH"), "/usr/local/cuda/bin/../lib");
  EXPECT_EQ(understood.plan->tool_folders.front(), "/usr/local/cuda/nvvm/bin");
}

TEST(NvccPlan, AToolOutsideOfTheToolkitIsNotUnderstood) {
  for (auto const& [from, to] :
       {std::pair{"#$ cudafe++ ", "#$ kernels/cudafe++ "}, std::pair{"#$ ptxas ", "#$ /tmp/ptxas "},
        std::pair{"\"$CICC_PATH/cicc\"", "\"$CICC_PATH/../../../tmp/cicc\""},
        std::pair{"\"/usr/bin\"/g++ -std", "\"/tmp\"/g++ -std"},
        std::pair{"CICC_PATH=/usr/local/cuda/bin/../nvvm/bin", "CICC_PATH=/tmp"},
        std::pair{"LD_LIBRARY_PATH=/usr/local/cuda/bin/../lib", "LD_LIBRARY_PATH=/tmp/lib"},
        std::pair{"/nvvm/libdevice", "/../../../../tmp"}, std::pair{"_HERE_=/usr/local/cuda", "_HERE_=/tmp"}}) {
    auto const understood = understand(changed(from, to));
    EXPECT_FALSE(understood.plan) << to;
    EXPECT_FALSE(understood.why_not.empty());
  }
}

TEST(NvccPlan, AFileWrittenElsewhereIsNotUnderstood) {
  for (auto const& [from, to] :
       {std::pair{"-o \"/probe/tmpxft", "-o \"/tmp/tmpxft"}, std::pair{"_probe.cpp1.ii\" \n", "_probe.cpp9.ii\" \n"},
        std::pair{"-o \"/probe/object.o\"", "-o \"/probe/other.o\""},
        std::pair{"--embedded-fatbin=\"/probe/", "--embedded-fatbin=\"/tmp/"},
        std::pair{"--module_id_file_name \"/probe/tmpxft_", "--module_id_file_name \"/probe/../tmpxft_"},
        std::pair{"Dependencies -- > /probe/", "Dependencies -- > /tmp/"}}) {
    EXPECT_FALSE(understand(changed(from, to)).plan) << to;
  }
}

TEST(NvccPlan, OtherStepsAreNotUnderstood) {
  auto const line_of = [](const std::string& start) {
    auto const text = dry_run().text;
    auto const at = text.find(start);
    return text.substr(at, text.find('\n', at) + 1 - at);
  };
  std::string const ptxas = line_of("#$ ptxas");
  for (auto const& [from, to] :
       {std::pair{ptxas, std::string()}, std::pair{ptxas, ptxas + ptxas}, std::pair{ptxas, "#$ nvlink -o x\n" + ptxas},
        std::pair{ptxas, line_of("#$ fatbinary") + ptxas}, std::pair{line_of("#$ rm"), std::string("#$ cp a b\n")},
        std::pair{ptxas, "nvcc warning : something\n" + ptxas}, std::pair{ptxas, "#$ NEW_PATH=/x\n" + ptxas},
        std::pair{std::string("#$ TOP="), std::string("#$ NEW_PATH=")},
        std::pair{std::string("#$ ptxas "), std::string("#$ ptxas @kernels/words ")},
        std::pair{std::string("--image3"), std::string("\"--image3=kind=ptx,sm=90,file=/x\" --image3")}}) {
    EXPECT_FALSE(understand(changed(from, to)).plan) << to;
  }
  EXPECT_FALSE(understand({"", dry_run().names, "/usr/bin/g++", "/usr/local/cuda/bin/nvcc"}).plan);
}

}  // namespace
}  // namespace cuda_agent::build
