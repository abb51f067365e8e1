#include <array>

#include "device/compare.hpp"
#include "device/cpu/elements.hpp"

namespace cuda_agent::device {
namespace {

__extension__ typedef unsigned __int128 Wide;

/// Both halves of the 128-bit product: every bit of either factor reaches every bit of the result's middle.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

// Odd, with as many ones as zeros; the digits of pi.
constexpr std::array<std::uint64_t, 5> secrets = {0x243f6a8885a308d3U, 0x13198a2e03707345U, 0xa4093822299f31d1U,
                                                  0x082efa98ec4e6c89U, 0x452821e638d01377U};

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed) {
  constexpr std::size_t stripe = 64;
  const std::uint64_t key = mix(seed ^ secrets[0], secrets[1]);
  // Four chains side by side (one would wait for each product), in variables of their own to stay in registers.
  std::uint64_t a = key ^ secrets[1];
  std::uint64_t b = key ^ secrets[2];
  std::uint64_t c = key ^ secrets[3];
  std::uint64_t d = key ^ secrets[4];
  const auto absorb_pair = [](std::uint64_t& lane, const std::byte* place, std::uint64_t secret) {
    lane += mix(elements::read<std::uint64_t>(place) ^ secret, elements::read<std::uint64_t>(place + 8) ^ lane);
  };
  const auto absorb = [&](const std::byte* place) {
    absorb_pair(a, place, secrets[1] ^ key);
    absorb_pair(b, place + 16, secrets[2] ^ key);
    absorb_pair(c, place + 32, secrets[3] ^ key);
    absorb_pair(d, place + 48, secrets[4] ^ key);
  };
  std::size_t done = 0;
  for (; done + stripe <= bytes.size(); done += stripe) {
    absorb(bytes.data() + done);
  }
  if (done < bytes.size()) {
    std::array<std::byte, stripe> rest{};
    std::memcpy(rest.data(), bytes.data() + done, bytes.size() - done);
    absorb(rest.data());
  }
  std::uint64_t sum = mix(key ^ bytes.size(), secrets[0]);
  for (const std::uint64_t lane : {a, b, c, d}) {
    sum = mix(sum ^ lane, secrets[4]) + lane;
  }
  return sum;
}

}  // namespace cuda_agent::device
