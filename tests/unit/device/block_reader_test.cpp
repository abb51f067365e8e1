#include "device/cpu/block_reader.hpp"

#include <gtest/gtest.h>

#include "device/cpu/elements.hpp"

namespace cuda_agent::device {
namespace {

TEST(WalkOf, MergesDimensionsThatLieOneAfterAnother) {
  EXPECT_EQ(walk_of(contiguous(DType::float32, {4, 1, 5, 6})).size(), 1U);
  EXPECT_EQ(walk_of({DType::float32, {4, 5}, {8, 1}, 0}).size(), 2U);
  EXPECT_EQ(walk_of({DType::float32, {4, 5}, {1, 4}, 0}).size(), 2U);
  const std::vector<WalkDimension> expanded = walk_of({DType::float32, {7, 9}, {0, 0}, 0});
  ASSERT_EQ(expanded.size(), 1U);
  EXPECT_EQ(expanded[0].size, 63);
  EXPECT_EQ(expanded[0].stride, 0);
}

TEST(WalkOf, CountsBeyond32Bits) {
  const std::vector<WalkDimension> walk = walk_of({DType::boolean, {3, 1431655767, 5}, {0, 0, 0}, 0});
  ASSERT_EQ(walk.size(), 1U);
  EXPECT_EQ(walk[0].size, std::int64_t{21474836505});
}

TEST(BlockReader, GoesOnWhereTheLastBlockEnded) {
  std::vector<std::int16_t> values(24);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int16_t>(i);
  }
  const TensorLayout layout{DType::int16, {2, 3, 4}, {1, 8, 2}, 0};  // the last dimension in steps of two
  BlockReader<elements::Plain<std::int16_t, std::int64_t>> reader(std::as_bytes(std::span(values)), layout);
  std::vector<std::int64_t> seen;
  for (const std::int64_t count : {1, 5, 7, 11}) {
    const std::int64_t* block = reader.next(count);
    seen.insert(seen.end(), block, block + count);
  }
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22,  //
                                             1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23}));
}

}  // namespace
}  // namespace cuda_agent::device
