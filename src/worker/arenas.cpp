#include "arenas.hpp"

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "cuda_gate.hpp"

namespace worker {

Arenas::~Arenas() {
  for (auto const& [id, mapping] : m_mappings) {
    let_go(mapping);
  }
}

void Arenas::let_go(const Mapping& mapping) {
  if (!mapping.lent) {
    ::munmap(mapping.base, mapping.bytes);
  }
}

void Arenas::map(int id, int fd, std::uint64_t bytes, bool on_gpu) {
  unmap(id);
  if (on_gpu) {
#ifdef CUDA_AGENT_TORCH_CUDA
    auto const lent = std::make_shared<LentMemory>(fd, bytes);
    m_mappings[id] = Mapping{lent->base(), bytes, lent};
    return;
#else
    ::close(fd);
    throw std::runtime_error("this worker module was built without CUDA");
#endif
  }
  void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  int const reason = errno;
  ::close(fd);
  if (base == MAP_FAILED) {
    throw std::runtime_error("cannot map an arena of " + std::to_string(bytes) + " bytes: " + std::strerror(reason));
  }
  m_mappings[id] = Mapping{base, bytes, nullptr};
}

void Arenas::unmap(int id) {
  auto const found = m_mappings.find(id);
  if (found != m_mappings.end()) {
    let_go(found->second);
    m_mappings.erase(found);
  }
}

void* Arenas::address(int id, std::uint64_t at, std::uint64_t bytes) const {
  auto const found = m_mappings.find(id);
  if (found == m_mappings.end()) {
    throw std::out_of_range("no arena " + std::to_string(id));
  }
  if (at > found->second.bytes || bytes > found->second.bytes - at) {
    throw std::out_of_range("bytes " + std::to_string(at) + "+" + std::to_string(bytes) + " lie outside arena " +
                            std::to_string(id) + " of " + std::to_string(found->second.bytes));
  }
  return static_cast<char*>(found->second.base) + at;
}

at::Tensor Arenas::bytes_of(int id, std::uint64_t at, std::uint64_t bytes) const {
  void* const place = address(id, at, bytes);
  auto options = at::TensorOptions().dtype(at::kByte);
  if (m_mappings.at(id).lent) {
    options = options.device(at::kCUDA, 0);  // a worker sees one GPU
  }
  return at::from_blob(place, {static_cast<std::int64_t>(bytes)}, options);
}

at::Tensor tensor_over(const at::Tensor& bytes, at::ScalarType dtype, std::int64_t offset,
                       const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& stride) {
  // set_ checks that shape, stride and offset stay inside the storage, and the result is no view of anything.
  at::Tensor tensor = at::empty({0}, bytes.options().dtype(dtype));
  tensor.set_(bytes.storage(), offset, shape, stride);
  return tensor;
}

}  // namespace worker
