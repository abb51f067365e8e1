// What becomes of the driver's answers. A GPU that has failed cannot be had, so that its codes are given by hand.
#include "device/cuda/driver.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::device {
namespace {

Error error_of(cudaError_t status) { return checked(status, "reading results").error(); }

TEST(DriversAnswers, SuccessIsNone) {
  EXPECT_TRUE(checked(cudaSuccess, "reading results"));
  EXPECT_TRUE(checked(CUDA_SUCCESS, "reading results"));
}

class UncorrectableAnswers : public testing::TestWithParam<cudaError_t> {};

TEST_P(UncorrectableAnswers, AreTheGpusFaultWhoeverGivesThem) {
  Error const of_runtime = error_of(GetParam());
  Error const of_driver = checked(static_cast<CUresult>(GetParam()), "reading results").error();
  for (Error const& error : {of_runtime, of_driver}) {
    EXPECT_EQ(error.outcome, Outcome::environment_error);
    EXPECT_EQ(error.fault, Fault::environment);
    EXPECT_NE(error.message.find("the GPU itself has failed while reading results"), std::string::npos)
        << error.message;
    ASSERT_FALSE(error.hints.empty());
    EXPECT_NE(error.hints.front().find("--gpu"), std::string::npos) << error.hints.front();
  }
}

INSTANTIATE_TEST_SUITE_P(Codes, UncorrectableAnswers,
                         testing::Values(cudaErrorECCUncorrectable, cudaErrorNvlinkUncorrectable, cudaErrorContained));

TEST(DriversAnswers, ALackOfMemoryIsSaid) {
  EXPECT_NE(error_of(cudaErrorMemoryAllocation).message.find("too little free memory"), std::string::npos);
  EXPECT_NE(checked(CUDA_ERROR_OUT_OF_MEMORY, "x").error().message.find("too little free memory"), std::string::npos);
}

TEST(DriversAnswers, WhatOneProcessDidDoesNotCondemnTheGpu) {
  Error const error = error_of(cudaErrorIllegalAddress);
  EXPECT_EQ(error.message.find("itself"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("cudaErrorIllegalAddress"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace cuda_agent::device
