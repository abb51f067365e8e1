// Device memory: lendable by descriptor (cuMemCreate), or the supervisor's own.
#pragma once

#include <memory>

#include "device/backend.hpp"
#include "util/fd.hpp"

namespace cuda_agent::device {

class CudaArena : public Arena {
 public:
  static Result<std::unique_ptr<CudaArena>> lendable(int gpu, std::uint64_t bytes);
  static Result<std::unique_ptr<CudaArena>> unshared(std::uint64_t bytes);
  virtual std::byte* base() const = 0;
};

/// The address of a span of a CudaArena. Errors: internal_error when it reaches outside.
Result<std::byte*> address_of(const Span& span);

/// A page of host memory that is lent like an arena: a sealed memfd, mapped here.
class ControlArena final : public Arena {
 public:
  static Result<std::unique_ptr<ControlArena>> make();
  ControlArena(const ControlArena&) = delete;
  ControlArena& operator=(const ControlArena&) = delete;
  ~ControlArena() override;

  std::uint64_t size() const override;
  int descriptor() const override { return m_fd.get(); }
  void* page() const { return m_page; }

 private:
  ControlArena(util::Fd fd, void* page) : m_fd(std::move(fd)), m_page(page) {}

  util::Fd m_fd;
  void* m_page;
};

}  // namespace cuda_agent::device
