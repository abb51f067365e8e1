#include "judge/tolerance.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::judge {
namespace {

using device::DType;

TEST(ToleranceOf, FollowsTheDtype) {
  EXPECT_EQ(default_tolerance(DType::float32).rtol, 1e-2);
  EXPECT_EQ(default_tolerance(DType::float32).atol, 1e-2);
  EXPECT_EQ(default_tolerance(DType::complex64).atol, 1e-2);
  EXPECT_EQ(default_tolerance(DType::bfloat16).rtol, 1e-2);
  EXPECT_EQ(default_tolerance(DType::float8_e5m2).atol, 1e-1);
  EXPECT_EQ(default_tolerance(DType::float64).rtol, 1e-4);
  EXPECT_EQ(default_tolerance(DType::complex128).rtol, 1e-4);
}

TEST(ToleranceOf, IntegersAndBoolsStayExactWhateverIsAskedFor) {
  for (const DType dtype : {DType::int64, DType::uint8, DType::boolean}) {
    const Tolerance tolerance = tolerance_for(dtype, 0.5, 0.5);
    EXPECT_EQ(tolerance.rtol, 0);
    EXPECT_EQ(tolerance.atol, 0);
  }
}

TEST(ToleranceOf, EachPartCanBeSetAlone) {
  const Tolerance only_rtol = tolerance_for(DType::float32, 1e-5, std::nullopt);
  EXPECT_EQ(only_rtol.rtol, 1e-5);
  EXPECT_EQ(only_rtol.atol, 1e-2);
  EXPECT_EQ(tolerance_for(DType::float32, std::nullopt, 0.0).atol, 0);
}

}  // namespace
}  // namespace cuda_agent::judge
