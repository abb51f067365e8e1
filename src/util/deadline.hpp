// A point in time after which a wait gives up.
#pragma once

#include <algorithm>
#include <chrono>

namespace cuda_agent::util {

using Clock = std::chrono::steady_clock;

class Deadline {
 public:
  static Deadline after(std::chrono::duration<double> span) {
    return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(span));
  }
  static Deadline at(Clock::time_point when) { return Deadline(when); }

  bool expired() const { return Clock::now() >= m_when; }
  Clock::time_point when() const { return m_when; }
  /// Milliseconds left, rounded up, never negative, fit for poll().
  int remaining_ms() const {
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(m_when - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, 1'000'000'000));
  }
  Deadline earlier(Deadline other) const { return Deadline(std::min(m_when, other.m_when)); }

 private:
  explicit Deadline(Clock::time_point when) : m_when(when) {}
  Clock::time_point m_when;
};

}  // namespace cuda_agent::util
