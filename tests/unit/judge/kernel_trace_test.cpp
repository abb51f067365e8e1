#include "judge/kernel_trace.hpp"

#include <gtest/gtest.h>

#include "judge/policy_stage.hpp"

namespace cuda_agent::judge {
namespace {

const std::vector<KernelResources> built = {{.name = "relu(float*, float const*, long)", .architecture = "sm_90a"}};

nlohmann::json answer() {
  return {{"sentinel", true},
          {"kernels",
           {{{"name", "ampere_sgemm_32x32"}, {"calls", 1}, {"microseconds", 30.0}},
            {{"name", "relu(float*, float const*, long)"}, {"calls", 2}, {"microseconds", 10.0}}}}};
}

TEST(KernelTrace, TellsTheCandidatesOwnKernelsFromOthers) {
  auto const read = read_trace(answer(), built);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 2U);
  EXPECT_FALSE(read->at(0).own);
  EXPECT_TRUE(read->at(1).own);
  EXPECT_EQ(read->at(1).calls, 2);
  EXPECT_EQ(read->at(1).microseconds, 10.0);
}

TEST(KernelTrace, WhereTheSentinelIsMissedNothingIsKnown) {
  auto reply = answer();
  reply["sentinel"] = false;
  auto const read = read_trace(reply, built);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().outcome, Outcome::environment_error);
}

TEST(KernelTrace, AnotherFormIsAnError) {
  for (auto const& reply : {nlohmann::json::object(), nlohmann::json{{"sentinel", true}, {"kernels", {{{"name", 3}}}}},
                            nlohmann::json{{"sentinel", "yes"}, {"kernels", nlohmann::json::array()}}}) {
    auto const read = read_trace(reply, built);
    ASSERT_FALSE(read) << reply;
    EXPECT_EQ(read.error().outcome, Outcome::crash);
  }
}

TEST(KernelTrace, NamesOfUntrustedProcessesAreEscaped) {
  auto reply = answer();
  reply["kernels"][0]["name"] = "\x1b[2Jkernel";
  auto const read = read_trace(reply, built);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at(0).name.find('\x1b'), std::string::npos);
}

TEST(KernelTrace, ACandidateThatOnlyCopiesBreaksARule) {
  std::filesystem::path const policy = CUDA_AGENT_POLICY;
  auto kernels = *read_trace(answer(), built);
  auto found = check_trace(kernels, policy);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->empty());

  kernels.pop_back();  // a library's alone: what it may be, the allow-list says
  found = check_trace(kernels, policy);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->empty());

  found = check_trace({{"Memcpy DtoD (Device -> Device)", 1, 3.5, false}, {"Memset (Device)", 1, 1, false}}, policy);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().rule, "no-own-kernel");
  EXPECT_NE(found->front().message.find("Memcpy DtoD"), std::string::npos);

  found = check_trace({}, policy);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->size(), 1U);
}

}  // namespace
}  // namespace cuda_agent::judge
