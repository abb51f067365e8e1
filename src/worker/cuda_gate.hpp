// The gate of a timed call on a GPU, and memory that is lent there. Everything goes through the driver library that
// torch has loaded.
#pragma once

#ifdef CUDA_AGENT_TORCH_CUDA

#include <cstdint>

#include <cuda.h>

#include "control_page.hpp"

namespace worker {

/// Throws std::runtime_error that names the call when `status` is not success.
void check_driver(CUresult status, const char* doing);

/// Lent device memory, mapped into this process. Takes over `fd`.
class LentMemory {
 public:
  LentMemory(int fd, std::uint64_t bytes);
  LentMemory(const LentMemory&) = delete;
  LentMemory& operator=(const LentMemory&) = delete;
  ~LentMemory();
  void* base() const { return reinterpret_cast<void*>(m_address); }

 private:
  CUmemGenericAllocationHandle m_memory = 0;
  CUdeviceptr m_address = 0;
  std::uint64_t m_bytes = 0;
  bool m_created = false;
  bool m_mapped = false;
};

class CudaGate {
 public:
  /// Maps the control page of `fd`, which is taken over, and loads the kernels. `whole` false: a gate of one thread,
  /// which lets other streams pass (tests show what the whole one is for).
  explicit CudaGate(int fd, bool whole = true);
  CudaGate(const CudaGate&) = delete;
  CudaGate& operator=(const CudaGate&) = delete;
  ~CudaGate();

  /// What follows is enqueued on this stream; at first it is the legacy default one.
  void use_stream(CUstream stream) { m_stream = stream; }
  /// Enqueues a kernel that fills the device until the supervisor opens it, and waits until it does.
  void close(std::uint64_t ticket);
  /// Enqueues that many kernels that do nothing.
  void nothing(int launches);
  /// Enqueues the writing of `nonce` as the first or the second answer.
  void answer_first(std::uint64_t nonce);
  void answer_second(std::uint64_t nonce);
  /// Gives back what was reserved of the L2 cache in this context.
  void reset_cache();

 private:
  void answer(std::uint64_t offset, std::uint64_t nonce);

  void* m_page = nullptr;
  std::uint64_t m_page_on_device = 0;
  CUmodule m_module = nullptr;
  CUfunction m_gate = nullptr;
  CUfunction m_answer = nullptr;
  CUdeviceptr m_flags = 0;
  CUfunction m_nothing = nullptr;
  CUstream m_stream = nullptr;
  unsigned m_blocks = 0;
  unsigned m_threads = 0;
  unsigned m_counted = 0;
};

}  // namespace worker

#endif
