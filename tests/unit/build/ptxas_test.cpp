#include "build/ptxas.hpp"

#include <gtest/gtest.h>

#include "unit/build/sample.hpp"

namespace cuda_agent::build {
namespace {

TEST(Ptxas, GivesRegistersSpillsAndSharedMemoryOfEachKernel) {
  auto const kernels = parse_ptxas(test::captured("ptxas_verbose.txt"));
  ASSERT_EQ(kernels.size(), 2U);  // the device function between them is no kernel
  EXPECT_EQ(kernels[0].name, "void shared_sum<256>(float const*, float*)");
  EXPECT_EQ(kernels[0].architecture, "sm_90a");
  EXPECT_EQ(kernels[0].registers, 22);
  EXPECT_EQ(kernels[0].shared_memory, 1024);
  EXPECT_EQ(kernels[0].spill_stores, 0);
  EXPECT_EQ(kernels[1].name, "spilling(float*, int)");
  EXPECT_EQ(kernels[1].registers, 64);
  EXPECT_EQ(kernels[1].stack_frame, 2216);
  EXPECT_EQ(kernels[1].spill_stores, 3356);
  EXPECT_EQ(kernels[1].spill_loads, 3680);
}

TEST(Ptxas, NothingInAnythingElse) {
  EXPECT_TRUE(parse_ptxas("ptxas info    : 0 bytes gmem\nUsed 9 registers\n").empty());
}

TEST(Ptxas, DemanglesOnlyWhatIsMangled) {
  EXPECT_EQ(demangle("_Z3fooi"), "foo(int)");
  EXPECT_EQ(demangle("axpby_launch"), "axpby_launch");
}

}  // namespace
}  // namespace cuda_agent::build
