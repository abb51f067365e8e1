// Compiling CUDA needs nvcc and no GPU.
#include <gtest/gtest.h>

#include "build/extension.hpp"
#include "build/nvcc.hpp"
#include "unit/build/sample.hpp"

namespace cuda_agent::build {
namespace {

using test::entry;
using test::Sample;
using test::Variable;

constexpr const char* kernel =
    "__global__ void scale_kernel(float* x, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) x[i] *= 2;\n"
    "}\n"
    "int scale(int n) { scale_kernel<<<1, 32>>>(nullptr, n); return n; }\n";

class CudaExtension : public testing::Test {
 protected:
  void SetUp() override {
    if (!m_sample.toolchain.nvcc) GTEST_SKIP() << "no nvcc here";
    m_sample.write("workspace/kernels/scale.cu", kernel);
  }
  Sample m_sample;
};

TEST_F(CudaExtension, IsBuiltForTheArchitectureAskedForWithTheKernelsResources) {
  for (bool const cached : {false, true}) {
    auto const result = m_sample.build(Target::cuda);
    ASSERT_FALSE(result.error) << result.error->message << result.error->detail;
    EXPECT_EQ(result.report.architecture, "sm_90a");
    EXPECT_EQ(result.report.architecture_from, "--arch");
    EXPECT_EQ(entry(result, "kernels/scale.cu").tool, "nvcc");
    EXPECT_EQ(entry(result, "kernels/scale.cu").cached, cached);
    ASSERT_EQ(result.report.kernels.size(), 1U);
    EXPECT_EQ(result.report.kernels[0].name, "scale_kernel(float*, int)");
    EXPECT_EQ(result.report.kernels[0].architecture, "sm_90a");
    EXPECT_GT(result.report.kernels[0].registers, 0);
    EXPECT_EQ(result.report.kernels[0].spill_stores, 0);
  }
}

TEST_F(CudaExtension, AnErrorHasFileLineAndColumn) {
  m_sample.write("workspace/kernels/scale.cu", "int scale(int n) {\n  return m;\n}\n");
  auto const result = m_sample.build(Target::cuda);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->outcome, Outcome::compile_error);
  EXPECT_EQ(result.error->message, "kernels/scale.cu:2:10: identifier \"m\" is undefined");
  RecordProperty("seconds", std::to_string(result.report.seconds));
}

TEST_F(CudaExtension, FlagsInNvccVariablesDoNotReachNvcc) {
  Variable const flags("NVCC_APPEND_FLAGS", "--no-such-flag");
  auto const result = m_sample.build(Target::cuda);
  EXPECT_FALSE(result.error) << result.error->message;
}

TEST_F(CudaExtension, AnArchitectureThatNvccRefusesIsNamedWithItsFlag) {
  auto request = m_sample.request(Target::cuda);
  request.architecture = "20";
  auto const result = m_sample.build(request);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->outcome, Outcome::environment_error);
  EXPECT_NE(result.error->message.find("--arch 20"), std::string::npos);
}

TEST_F(CudaExtension, WithoutNvccItIsTheEnvironmentsFaultAndNothingIsKept) {
  auto const nvcc = std::exchange(m_sample.toolchain.nvcc, std::nullopt);
  auto const without = m_sample.build(Target::cuda);
  ASSERT_TRUE(without.error);
  EXPECT_EQ(without.error->outcome, Outcome::environment_error);
  m_sample.toolchain.nvcc = nvcc;
  auto const with = m_sample.build(Target::cuda);
  EXPECT_FALSE(with.error) << with.error->message;
}

TEST_F(CudaExtension, TorchOfAnotherCudaVersionIsRefusedBeforeCompiling) {
  m_sample.interpreter.torch_cuda = "11.8";
  auto error = check_cuda(m_sample.toolchain, m_sample.interpreter);
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("11.8"), std::string::npos);
  m_sample.interpreter.torch_cuda.clear();
  error = check_cuda(m_sample.toolchain, m_sample.interpreter);
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("without CUDA"), std::string::npos);
}

}  // namespace
}  // namespace cuda_agent::build
