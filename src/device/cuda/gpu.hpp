// One GPU as the supervisor holds it: a stream, a piece of pinned host memory, and memory to flush the cache with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <cuda_runtime_api.h>

#include "cuda_agent/error.hpp"

namespace cuda_agent::device {

class Gpu {
 public:
  /// `asked`: an index among the visible devices or a UUID; empty for the first. No context is made yet.
  static Result<std::unique_ptr<Gpu>> find(const std::string& asked);
  /// Makes the context and what is used all the time. The context ends with this object.
  Result<void> start();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu();

  int ordinal() const { return m_ordinal; }
  const cudaDeviceProp& properties() const { return m_properties; }
  std::string uuid() const;  ///< "GPU-…", as nvidia-smi prints it

  /// Does not wait for other streams, and they do not wait for it.
  cudaStream_t stream() const { return m_stream; }
  Result<void> synchronize(const char* doing) const;

  /// Pinned host memory for what goes to and fro.
  static constexpr std::size_t pinned_bytes = std::size_t{1} << 20;
  std::byte* pinned() const { return m_pinned; }
  /// Device memory for what kernels report.
  static constexpr std::size_t report_bytes = std::size_t{1} << 18;
  void* report() const { return m_report; }

  /// Enqueues what makes every later read of a tensor come from memory, not from the L2 cache.
  Result<void> flush_cache(std::uint64_t seed) const;

 private:
  explicit Gpu(int ordinal) : m_ordinal(ordinal) {}
  Result<void> look();

  int m_ordinal;
  bool m_started = false;  ///< there may be a context
  bool m_ready = false;
  cudaDeviceProp m_properties{};
  cudaStream_t m_stream = nullptr;
  std::byte* m_pinned = nullptr;
  void* m_report = nullptr;
  std::byte* m_flush = nullptr;
  std::uint64_t m_flush_bytes = 0;
};

}  // namespace cuda_agent::device
