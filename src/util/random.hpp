// Random numbers: unpredictable ones from the kernel, and reproducible ones from a seed.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace cuda_agent::util {

/// 64 bits from getrandom(2). Aborts where the kernel has none to give: there is no safe way on.
std::uint64_t random_u64();

/// A seed for one purpose, 63 bits. Neither `seed` nor what is derived for other purposes or from its neighbours
/// follows from it (SHA-256): it can be told to whom the others must stay unknown, and drawing under it gives nothing
/// away.
std::uint64_t derived_seed(std::string_view purpose, std::uint64_t seed);

/// SplitMix64 (Steele, Lea, Flood 2014): the same sequence for the same seed on every platform. A
/// UniformRandomBitGenerator. Not for secrets.
class SplitMix64 {
 public:
  using result_type = std::uint64_t;

  explicit SplitMix64(std::uint64_t seed) : m_state(seed) {}

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

  std::uint64_t operator()();
  /// In [0, 1), 53 bits.
  double uniform();
  /// In [0, n), without bias. n = 0 gives 0.
  std::uint64_t below(std::uint64_t n);

 private:
  std::uint64_t m_state;
};

}  // namespace cuda_agent::util
