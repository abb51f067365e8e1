#include "build/architecture.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::build {
namespace {

ArchitectureQuestion nvcc_13() {
  ArchitectureQuestion question;
  question.supported = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
  question.nvcc_version = "13.0.88";
  return question;
}

TEST(Architecture, TakesAllUsualWaysOfWriting) {
  for (const char* text : {"9.0a", "90a", "sm_90a", "compute_90a"}) EXPECT_EQ(parse_architecture(text), "90a") << text;
  for (const char* text : {"9.0", "90", "sm_90"}) EXPECT_EQ(parse_architecture(text), "90") << text;
  EXPECT_EQ(parse_architecture("10.3"), "103");
  EXPECT_EQ(parse_architecture("12.0f"), "120f");
  for (const char* text : {"", "9", "hopper", "sm_", "90b", "9.00", "sm_90a,code=sm_80", "-arch=sm_90", "9.0.1"}) {
    EXPECT_FALSE(parse_architecture(text)) << text;
  }
}

TEST(Architecture, FlagComesBeforeListBeforeGpu) {
  auto question = nvcc_13();
  question.gpu = "9.0";
  EXPECT_EQ(decide_architecture(question)->name(), "sm_90a");
  EXPECT_EQ(decide_architecture(question)->from, "gpu");
  question.torch_list = "8.0;9.0";
  EXPECT_EQ(decide_architecture(question)->name(), "sm_90");
  EXPECT_EQ(decide_architecture(question)->from, "TORCH_CUDA_ARCH_LIST");
  question.requested = "80";
  EXPECT_EQ(decide_architecture(question)->name(), "sm_80");
  EXPECT_EQ(decide_architecture(question)->from, "--arch");
}

TEST(Architecture, PrefersTheVariantOfTheGpuItself) {
  for (auto const& [gpu, name] : {std::pair{"7.5", "sm_75"}, std::pair{"8.9", "sm_89"}, std::pair{"9.0", "sm_90a"},
                                  std::pair{"10.0", "sm_100a"}, std::pair{"12.0", "sm_120a"}}) {
    auto question = nvcc_13();
    question.gpu = gpu;
    EXPECT_EQ(decide_architecture(question)->name(), name);
  }
}

TEST(Architecture, TakesWhatTorchTakesInItsList) {
  auto question = nvcc_13();
  for (auto const& [list, name] :
       {std::pair{"9.0a", "sm_90a"}, std::pair{"8.0 9.0+PTX", "sm_90"}, std::pair{"Hopper", "sm_90"},
        std::pair{"9.0;9.0a", "sm_90a"}, std::pair{"8.0,8.6", "sm_86"}}) {
    question.torch_list = list;
    ASSERT_TRUE(decide_architecture(question)) << list;
    EXPECT_EQ(decide_architecture(question)->name(), name) << list;
  }
}

TEST(Architecture, NvccFlagsNameCodeAndVirtualArchitecture) {
  EXPECT_EQ((Architecture{"90a", "gpu"}.nvcc_flags()),
            (std::vector<std::string>{"-gencode", "arch=compute_90a,code=sm_90a"}));
}

TEST(Architecture, WithoutAnythingToDecideByItAsksForAFlag) {
  auto const decided = decide_architecture(nvcc_13());
  ASSERT_FALSE(decided);
  EXPECT_EQ(decided.error().outcome, Outcome::environment_error);
  EXPECT_NE(decided.error().hints.at(0).find("--arch 90a"), std::string::npos);
}

void expect_refused(const ArchitectureQuestion& question, const std::vector<std::string>& words) {
  auto const decided = decide_architecture(question);
  ASSERT_FALSE(decided);
  EXPECT_EQ(decided.error().outcome, Outcome::environment_error);
  EXPECT_EQ(decided.error().fault, Fault::environment);
  for (auto const& word : words) EXPECT_NE(decided.error().message.find(word), std::string::npos) << word;
  EXPECT_NE(decided.error().hints.back().find("decided by --arch"), std::string::npos);
}

TEST(Architecture, RefusedByNvccNamesTheFlagAndWhoDecides) {
  auto question = nvcc_13();
  question.requested = "sm_70";
  expect_refused(question, {"--arch sm_70", "nvcc 13.0.88", "sm_75"});
  question.requested.clear();
  question.torch_list = "7.0;9.0";
  expect_refused(question, {"TORCH_CUDA_ARCH_LIST", "sm_70"});
  question.torch_list = "fast";
  expect_refused(question, {"TORCH_CUDA_ARCH_LIST", "\"fast\""});
}

TEST(Architecture, AListWithoutTheGpuIsAnError) {
  auto question = nvcc_13();
  question.gpu = "9.0";
  question.torch_list = "8.0;8.6";
  expect_refused(question, {"TORCH_CUDA_ARCH_LIST", "9.0"});
}

TEST(Architecture, AContradictingNvccVariableIsAnErrorThatNamesIt) {
  auto question = nvcc_13();
  question.requested = "90a";
  question.variables = {{"NVCC_APPEND_FLAGS", "-O1 -arch=sm_70"}};
  expect_refused(question, {"NVCC_APPEND_FLAGS", "-arch=sm_70", "nvcc 13.0.88"});
  question.variables = {{"NVCC_PREPEND_FLAGS", "-gencode arch=compute_80,code=sm_80"}};
  expect_refused(question, {"NVCC_PREPEND_FLAGS", "-gencode arch=compute_80,code=sm_80", "sm_90a", "--arch"});
}

TEST(Architecture, OtherFlagsInNvccVariablesDoNotMatter) {
  auto question = nvcc_13();
  question.requested = "90a";
  question.variables = {{"NVCC_APPEND_FLAGS", "-lineinfo -gencode=arch=compute_90a,code=sm_90a"}};
  EXPECT_TRUE(decide_architecture(question));
}

TEST(Architecture, ReadsTheListOfNvcc) {
  EXPECT_EQ(parse_supported("sm_100\nsm_75\n\nsm_90\n"), (std::vector<int>{75, 90, 100}));
}

}  // namespace
}  // namespace cuda_agent::build
