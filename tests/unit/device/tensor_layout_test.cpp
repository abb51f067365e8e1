#include "device/tensor_layout.hpp"

#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

namespace cuda_agent::device {
namespace {

constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

TEST(DTypeNames, EveryNameReadsBackAsItself) {
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype) << to_string(dtype);
    EXPECT_GE(item_size(dtype), 1U);
  }
}

TEST(DTypeNames, OtherWordsAreRefused) {
  EXPECT_EQ(parse_dtype("torch.float32"), std::nullopt);
  EXPECT_EQ(parse_dtype("half"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(DTypeNames, SizesAndClasses) {
  EXPECT_EQ(item_size(DType::complex128), 16U);
  EXPECT_EQ(item_size(DType::bfloat16), 2U);
  EXPECT_EQ(item_size(DType::boolean), 1U);
  EXPECT_TRUE(is_floating(DType::float8_e5m2));
  EXPECT_FALSE(is_floating(DType::complex64));
  EXPECT_TRUE(is_complex(DType::complex32));
  EXPECT_FALSE(is_complex(DType::int32));
}

TEST(Numel, CountsScalarsEmptyAndOrdinaryTensors) {
  EXPECT_EQ(numel(contiguous(DType::float32, {})), 1);
  EXPECT_EQ(numel(contiguous(DType::float32, {4, 0, 3})), 0);
  EXPECT_EQ(numel(contiguous(DType::float32, {4, 5, 3})), 60);
}

TEST(Numel, RefusesOverflowAndNegativeDimensions) {
  const std::vector<std::int64_t> too_many = {huge, 2};
  const std::vector<std::int64_t> negative = {4, -1};
  const std::vector<std::int64_t> empty_after_all = {huge, 2, 0};
  EXPECT_THROW(numel(too_many), std::overflow_error);
  EXPECT_THROW(numel(negative), std::overflow_error);
  EXPECT_EQ(numel(empty_after_all), 0);
}

TEST(Extent, OfContiguousExpandedAndPaddedTensors) {
  EXPECT_EQ(extent_bytes(contiguous(DType::float32, {3, 4})).value(), 48U);
  EXPECT_EQ(extent_bytes(contiguous(DType::float64, {})).value(), 8U);
  EXPECT_EQ(extent_bytes(contiguous(DType::float32, {3, 0})).value(), 0U);
  EXPECT_EQ(extent_bytes({DType::float32, {1000, 4}, {0, 1}, 0}).value(), 16U);
  EXPECT_EQ(extent_bytes({DType::float16, {3, 4}, {8, 1}, 0}).value(), (2U * 8 + 3 + 1) * 2);
}

TEST(Extent, RefusesWhatCannotBe) {
  EXPECT_FALSE(extent_bytes({DType::float32, {3, 4}, {4}, 0}));
  EXPECT_FALSE(extent_bytes({DType::float32, {3}, {-1}, 0}));
  EXPECT_FALSE(extent_bytes({DType::float32, {-3}, {1}, 0}));
  EXPECT_FALSE(extent_bytes({DType::float32, {huge, huge}, {0, 0}, 0}));
  EXPECT_FALSE(extent_bytes({DType::float32, {3}, {huge}, 0}));
  EXPECT_FALSE(extent_bytes({DType::float64, {huge}, {1}, 0}));
  EXPECT_FALSE(extent_bytes({DType::float32, {3}, {1}, std::numeric_limits<std::uint64_t>::max() - 4}));
  EXPECT_FALSE(extent_bytes({DType::float32, std::vector<std::int64_t>(65, 1), std::vector<std::int64_t>(65, 1), 0}));
}

TEST(Extent, AnErrorShowsTheLayout) {
  const auto extent = extent_bytes({DType::float32, {3}, {-1}, 16});
  ASSERT_FALSE(extent);
  EXPECT_NE(extent.error().message.find("shape [3], stride [-1], offset 16"), std::string::npos);
}

TEST(Contiguity, IgnoresStridesOfDimensionsOfSizeOne) {
  EXPECT_TRUE(is_contiguous({DType::float32, {2, 1, 3}, {3, 77, 1}, 0}));
  EXPECT_FALSE(is_contiguous({DType::float32, {2, 3}, {1, 2}, 0}));
  EXPECT_FALSE(is_contiguous({DType::float32, {2, 3}, {0, 1}, 0}));
  EXPECT_TRUE(is_contiguous({DType::float32, {2, 0}, {5, 5}, 0}));
  EXPECT_TRUE(is_contiguous(contiguous(DType::int8, {5, 4, 3}, 7)));
}

TEST(Unravel, GivesTheRowMajorIndex) {
  const std::vector<std::int64_t> shape = {2, 3, 4};
  EXPECT_EQ(unravel(0, shape), (std::vector<std::int64_t>{0, 0, 0}));
  EXPECT_EQ(unravel(23, shape), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(unravel(17, shape), (std::vector<std::int64_t>{1, 1, 1}));
  EXPECT_TRUE(unravel(0, {}).empty());
}

}  // namespace
}  // namespace cuda_agent::device
