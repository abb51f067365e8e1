// Memory that the supervisor lends: mapped by descriptor, addressed by a number, wrapped as tensors without a copy.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <ATen/ATen.h>

namespace worker {

class Arenas {
 public:
  ~Arenas();
  /// Maps `bytes` of `fd` (which is closed) as arena `id`. A CPU arena is a memfd, one on a GPU memory of its driver.
  void map(int id, int fd, std::uint64_t bytes, bool on_gpu);
  void unmap(int id);

  /// Address of byte `at` of an arena, after checking that `bytes` fit behind it. Throws std::out_of_range.
  void* address(int id, std::uint64_t at, std::uint64_t bytes) const;

  /// A storage over part of an arena; it never frees. Tensors that share one alias each other as the task's did.
  at::Tensor bytes_of(int id, std::uint64_t at, std::uint64_t bytes) const;

 private:
  struct Mapping {
    void* base = nullptr;
    std::uint64_t bytes = 0;
    std::shared_ptr<void> lent;  ///< memory of a GPU, which lets go of itself; empty: host memory
  };
  static void let_go(const Mapping& mapping);
  std::map<int, Mapping> m_mappings;
};

/// A tensor over the storage of `bytes` (from Arenas::bytes_of): `offset` and `stride` in elements of `dtype`.
at::Tensor tensor_over(const at::Tensor& bytes, at::ScalarType dtype, std::int64_t offset,
                       const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& stride);

}  // namespace worker
