// Arenas in host memory: sealed memfds when lent, anonymous memory when private.
#pragma once

#include <span>

#include "device/backend.hpp"
#include "util/fd.hpp"

namespace cuda_agent::device {

class CpuArena final : public Arena {
 public:
  /// Lendable: a memfd that can neither shrink nor grow, so that a worker cannot make an access of ours fault.
  static Result<std::unique_ptr<CpuArena>> lendable(std::uint64_t bytes);
  static Result<std::unique_ptr<CpuArena>> unshared(std::uint64_t bytes);

  CpuArena(const CpuArena&) = delete;
  CpuArena& operator=(const CpuArena&) = delete;
  ~CpuArena() override;

  std::uint64_t size() const override { return m_bytes; }
  int descriptor() const override { return m_fd.get(); }
  std::span<std::byte> memory() const { return {m_base, m_bytes}; }

 private:
  CpuArena(util::Fd fd, std::byte* base, std::uint64_t bytes) : m_fd(std::move(fd)), m_base(base), m_bytes(bytes) {}

  util::Fd m_fd;
  std::byte* m_base;
  std::uint64_t m_bytes;
};

/// The memory of a span of a CpuArena. Errors: internal_error when it reaches outside.
Result<std::span<std::byte>> memory_of(const Span& span);

}  // namespace cuda_agent::device
