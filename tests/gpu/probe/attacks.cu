#include "attacks.hpp"

namespace probe {
namespace {

__global__ void stray(const volatile std::uint64_t* go, std::uint32_t* escaped) {
  if (*go == 0) atomicAdd_system(escaped, 1U);
}

__global__ void work(long long cycles, std::uint32_t* output, std::uint32_t words, std::uint32_t value) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
  for (std::uint32_t i = threadIdx.x; i < words; i += blockDim.x) output[i] = value;
}

__global__ void increment(const std::uint32_t* input, std::uint32_t* output, std::uint32_t words) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < words) output[i] = input[i] + 1;
}

__global__ void write(volatile std::uint64_t* place, std::uint64_t value, int times) {
  for (int i = 0; i < times; ++i) *place = value;
}

__global__ void beat(volatile std::uint64_t* place, int times) {
  for (int i = 0; i < times; ++i) *place = *place + 1;
}

}  // namespace

void launch_stray(const std::uint64_t* go, std::uint32_t* escaped, cudaStream_t stream) {
  stray<<<1, 1, 0, stream>>>(go, escaped);
}

void launch_work(long long cycles, std::uint32_t* output, std::uint32_t words, std::uint32_t value,
                 cudaStream_t stream) {
  work<<<1, 256, 0, stream>>>(cycles, output, words, value);
}

void launch_increment(const std::uint32_t* input, std::uint32_t* output, std::uint32_t words, cudaStream_t stream) {
  increment<<<(words + 255) / 256, 256, 0, stream>>>(input, output, words);
}

void launch_write(std::uint64_t* place, std::uint64_t value, int times, cudaStream_t stream) {
  write<<<1, 1, 0, stream>>>(place, value, times);
}

void launch_beat(std::uint64_t* place, int times, cudaStream_t stream) { beat<<<1, 1, 0, stream>>>(place, times); }

}  // namespace probe
