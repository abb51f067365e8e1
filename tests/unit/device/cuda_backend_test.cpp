// The CUDA side where there may be no GPU, no driver, or no CUDA in the program. With one: tests/gpu.
#include "device/cuda/cuda_backend.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::device {
namespace {

TEST(CudaBackend, SaysWhatToDoWhereThereIsNoGpu) {
  if (cuda_is_there()) {
    auto const backend = make_cuda_backend("");
    ASSERT_TRUE(backend) << backend.error().message;
    EXPECT_EQ((*backend)->name(), "cuda");
    return;
  }
  auto const backend = make_cuda_backend("");
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().outcome, Outcome::environment_error);
  EXPECT_FALSE(backend.error().message.empty());
  EXPECT_FALSE(backend.error().hints.empty());
}

TEST(CudaBackend, RefusesAGpuThatIsNotThere) {
  auto const backend = make_cuda_backend("GPU-00000000-0000-0000-0000-000000000000");
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().outcome, Outcome::environment_error);
}

}  // namespace
}  // namespace cuda_agent::device
