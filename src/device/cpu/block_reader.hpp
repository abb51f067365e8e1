// Reads a strided tensor block by block, in row-major order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/tensor_layout.hpp"

namespace cuda_agent::device {

/// Elements in a block: two blocks of doubles fit the first-level cache.
inline constexpr std::int64_t block_elements = 2048;

/// A dimension of a walk in row-major order; `stride` in bytes.
struct WalkDimension {
  std::int64_t size = 0;
  std::int64_t stride = 0;
};

/// The fewest dimensions that visit the same bytes in the same order, outermost first; never empty, sizes ≥ 1. The
/// layout must not be an empty tensor.
std::vector<WalkDimension> walk_of(const TensorLayout& layout);

/// Elements in order, as the numbers they are compared as.
template <typename Value>
class BlockSource {
 public:
  BlockSource() = default;
  BlockSource(const BlockSource&) = delete;
  BlockSource& operator=(const BlockSource&) = delete;
  virtual ~BlockSource() = default;

  /// The next `count` elements, at most block_elements and no more than are left. Valid until the next call.
  virtual const Value* next(std::int64_t count) = 0;
};

/// Reads stored elements. The caller has checked that the layout lies within the bytes.
template <typename Element>
class BlockReader final : public BlockSource<typename Element::Value> {
 public:
  using Value = typename Element::Value;

  BlockReader(std::span<const std::byte> bytes, const TensorLayout& layout)
      : m_start(bytes.data() + layout.offset), m_dimensions(walk_of(layout)), m_index(m_dimensions.size(), 0) {
    if constexpr (Element::direct) {
      void* place = const_cast<std::byte*>(m_start);  // only its address is looked at
      std::size_t space = sizeof(Value);
      m_in_place = m_dimensions.size() == 1 && m_dimensions[0].stride == static_cast<std::int64_t>(Element::size) &&
                   std::align(alignof(Value), sizeof(Value), place, space) != nullptr && place == m_start;
    }
    if (!m_in_place) {
      m_block.resize(block_elements);
    }
  }

  const Value* next(std::int64_t count) override {
    if constexpr (Element::direct) {
      if (m_in_place) {
        const void* place = m_start + m_position;
        m_position += count * static_cast<std::int64_t>(Element::size);
        return static_cast<const Value*>(place);
      }
    }
    for (std::int64_t filled = 0; filled < count;) {
      const std::int64_t run = std::min(count - filled, m_dimensions.back().size - m_index.back());
      load_run(m_block.data() + filled, run);
      filled += run;
      advance(run);
    }
    return m_block.data();
  }

  static std::unique_ptr<BlockSource<Value>> open(std::span<const std::byte> bytes, const TensorLayout& layout) {
    return std::make_unique<BlockReader>(bytes, layout);
  }

 private:
  void load_run(Value* target, std::int64_t run) const {
    constexpr auto item = static_cast<std::int64_t>(Element::size);
    const std::byte* place = m_start + m_position;
    const std::int64_t stride = m_dimensions.back().stride;
    if (stride == item) {  // a constant step lets the compiler use vectors
      for (std::int64_t i = 0; i < run; ++i) {
        target[i] = Element::load(place + i * item);
      }
    } else {
      for (std::int64_t i = 0; i < run; ++i) {
        target[i] = Element::load(place + i * stride);
      }
    }
  }

  void advance(std::int64_t run) {
    std::size_t dimension = m_dimensions.size() - 1;
    m_index[dimension] += run;
    m_position += run * m_dimensions[dimension].stride;
    while (dimension > 0 && m_index[dimension] == m_dimensions[dimension].size) {
      m_position -= m_index[dimension] * m_dimensions[dimension].stride;
      m_index[dimension] = 0;
      --dimension;
      ++m_index[dimension];
      m_position += m_dimensions[dimension].stride;
    }
  }

  const std::byte* m_start;
  std::vector<WalkDimension> m_dimensions;
  std::vector<std::int64_t> m_index;
  std::int64_t m_position = 0;  // bytes from m_start
  bool m_in_place = false;
  std::vector<Value> m_block;
};

}  // namespace cuda_agent::device
