#include "util/random.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <spdlog/fmt/fmt.h>
#include <sys/random.h>

#include "util/hash.hpp"

namespace cuda_agent::util {

std::uint64_t random_u64() {
  std::uint64_t value = 0;
  ssize_t got = 0;
  do {
    got = ::getrandom(&value, sizeof value, 0);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof value) {
    std::fputs("cuda-agent: getrandom failed\n", stderr);
    std::abort();
  }
  return value;
}

std::uint64_t derived_seed(std::string_view purpose, std::uint64_t seed) {
  constexpr std::size_t digits = 16;
  auto const hash = sha256_hex(fmt::format("{} {}", purpose, seed));
  return std::stoull(hash.substr(0, digits), nullptr, 16) >> 1U;
}

std::uint64_t SplitMix64::operator()() {
  m_state += 0x9E3779B97F4A7C15U;
  std::uint64_t z = m_state;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

double SplitMix64::uniform() { return static_cast<double>((*this)() >> 11U) * 0x1.0p-53; }

std::uint64_t SplitMix64::below(std::uint64_t n) {
  if (n == 0) return 0;
  // What is below 2^64 mod n would make small results likelier: draw again.
  std::uint64_t const skip = (0 - n) % n;
  std::uint64_t value = (*this)();
  while (value < skip) value = (*this)();
  return value % n;
}

}  // namespace cuda_agent::util
