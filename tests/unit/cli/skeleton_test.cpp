#include "cli/skeleton.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::cli {

TEST(Skeleton, NamesTheKernelAfterTheTask) {
  EXPECT_EQ(kernel_name("19_ReLU"), "relu");
  EXPECT_EQ(kernel_name("1_Square_matrix_multiplication_"), "square_matrix_multiplication");
  EXPECT_EQ(kernel_name("my-op.v2"), "my_op_v2");
  EXPECT_EQ(kernel_name("model"), "model_op");
  EXPECT_EQ(kernel_name("été 7"), "t_7");
  EXPECT_EQ(kernel_name("42"), "model_op");
}

TEST(Skeleton, HasTwinsAndABinding) {
  auto const files = kernel_skeleton("relu");
  ASSERT_EQ(files.size(), 3U);
  EXPECT_NE(files.at("kernels/relu_binding.cpp").find("REGISTER_BINDING(relu, bind_relu);"), std::string::npos);
  EXPECT_NE(files.at("kernels/relu_cpu.cpp").find("relu_run"), std::string::npos);
  EXPECT_NE(files.at("kernels/relu.cu").find("relu_launch"), std::string::npos);
  for (auto const& [name, text] : files) EXPECT_EQ(text.find('@'), std::string::npos) << name;
}

}  // namespace cuda_agent::cli
