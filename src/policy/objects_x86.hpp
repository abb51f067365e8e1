// How long an x86-64 instruction is, and whether it calls the kernel of the operating system.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cuda_agent::policy {

enum class KernelCall { none, syscall, sysenter, int_0x80 };

struct Instruction {
  std::size_t size = 0;  ///< 0: cut off, invalid in 64-bit mode, or not known here
  KernelCall kernel_call = KernelCall::none;
};

/// The first of `size` bytes of code. Knows what compilers emit: legacy, VEX and EVEX encodings (to AVX-512 FP16).
Instruction decode_x86(const unsigned char* code, std::size_t size);

}  // namespace cuda_agent::policy
