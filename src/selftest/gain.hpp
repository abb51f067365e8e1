// Whether an exploit that is bound and not refused gains nothing. On a machine that is busy one ratio says little.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "selftest/answer.hpp"

namespace cuda_agent::selftest {

class Gain {
 public:
  /// `most`: what the ratio to eager may reach.
  explicit Gain(double most) : m_most(most) {}

  void add(const Answer& answer);
  /// Whether it must be asked again: it was faster than it may be, but not surely. Three asks decide.
  bool is_open() const;
  /// What is wrong, in a sentence: the median of the ratios counts.
  std::optional<std::string> problem() const;

 private:
  double m_most;
  bool m_surely_faster = false;
  std::vector<double> m_estimates;
};

}  // namespace cuda_agent::selftest
