// Memory of CPU tensors.
#pragma once

namespace worker {

/// From now on torch takes the memory of CPU tensors from a cache of freed blocks, as it does on a GPU. glibc's aligned
/// allocation hardly ever finds a freed block of the same size again: nearly every result lies on pages never touched
/// before, and the kernel's zeroing of them takes longer than a memory-bound model, by an amount that differs between
/// processes (docs/measured.md).
void cache_cpu_memory();

}  // namespace worker
