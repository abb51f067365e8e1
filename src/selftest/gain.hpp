// Whether an exploit that is bound and not refused gains nothing, or does once its layers are switched off. On a
// machine that is busy one ratio says little.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "selftest/answer.hpp"

namespace cuda_agent::selftest {

/// What the ratio to eager must not exceed, or must.
enum class Bound { at_most, more_than };

class Gain {
 public:
  Gain(Bound bound, double limit) : m_bound(bound), m_limit(limit) {}

  void add(const Answer& answer);
  /// Whether it must be asked again: it is not as it must be, but may be so by chance. Three asks decide.
  bool is_open() const;
  /// Of the ratios so far; none where it was not timed.
  std::optional<double> median() const;
  /// What is wrong, in a sentence: the median counts.
  std::optional<std::string> problem() const;

 private:
  Bound m_bound;
  double m_limit;
  bool m_surely_faster = false;
  std::vector<double> m_estimates;
};

}  // namespace cuda_agent::selftest
