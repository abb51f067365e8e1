#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "device/compare.hpp"

namespace cuda_agent::device {
namespace {

std::vector<std::byte> pattern(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i * 131 + i / 251);
  }
  return bytes;
}

TEST(Checksum, IsTheSameForTheSameBytesAndDiffersByLength) {
  std::set<std::uint64_t> seen;
  for (std::size_t size = 0; size < 300; ++size) {
    const std::vector<std::byte> zeros(size);
    EXPECT_EQ(checksum(zeros), checksum(std::vector<std::byte>(size)));
    seen.insert(checksum(zeros));
  }
  EXPECT_EQ(seen.size(), 300U);
}

TEST(Checksum, EveryBitCounts) {
  std::vector<std::byte> bytes = pattern(197);
  const std::uint64_t before = checksum(bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const auto flip = static_cast<std::byte>(1U << (bit % 8));
    bytes[bit / 8] ^= flip;
    EXPECT_NE(checksum(bytes), before) << "bit " << bit;
    bytes[bit / 8] ^= flip;
  }
}

TEST(Checksum, DependsOnPosition) {
  const std::vector<std::byte> bytes = pattern(512);
  for (const std::size_t distance : {1U, 8U, 16U, 64U, 128U}) {
    std::vector<std::byte> rotated = bytes;
    std::rotate(rotated.begin(), rotated.begin() + static_cast<std::ptrdiff_t>(distance), rotated.end());
    EXPECT_NE(checksum(rotated), checksum(bytes)) << "rotated by " << distance;
  }
}

TEST(Checksum, DependsOnTheSeed) {
  const std::vector<std::byte> bytes = pattern(512);
  EXPECT_NE(checksum(bytes, 1), checksum(bytes, 2));
  EXPECT_NE(checksum(bytes, 1), checksum(bytes));
}

}  // namespace
}  // namespace cuda_agent::device
