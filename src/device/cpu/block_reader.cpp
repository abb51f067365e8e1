#include "device/cpu/block_reader.hpp"

namespace cuda_agent::device {

std::vector<WalkDimension> walk_of(const TensorLayout& layout) {
  const auto item = static_cast<std::int64_t>(item_size(layout.dtype));
  std::vector<WalkDimension> walk;
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    if (layout.shape[i] == 1) {
      continue;  // its stride is never used and may be anything
    }
    const WalkDimension inner{layout.shape[i], layout.stride[i] * item};
    if (!walk.empty() && walk.back().stride == inner.size * inner.stride) {
      walk.back() = WalkDimension{walk.back().size * inner.size, inner.stride};
    } else {
      walk.push_back(inner);
    }
  }
  if (walk.empty()) {
    walk.push_back(WalkDimension{1, item});
  }
  return walk;
}

}  // namespace cuda_agent::device
