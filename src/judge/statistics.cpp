#include "judge/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>

namespace cuda_agent::judge {
namespace {

// Up to here the distribution is counted, above it approximated.
constexpr int most_exact = 50;

void require_finite(std::span<const double> values) {
  if (values.empty()) {
    throw std::invalid_argument("an estimate needs at least one value");
  }
  if (!std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); })) {
    throw std::invalid_argument("an estimate needs finite values");
  }
}

/// The means of all pairs, each value with itself included.
std::vector<double> walsh_averages(std::span<const double> values) {
  std::vector<double> averages;
  averages.reserve(values.size() * (values.size() + 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i; j < values.size(); ++j) {
      averages.push_back(values[i] / 2 + values[j] / 2);
    }
  }
  return averages;
}

/// The order-th smallest, counted from 1. Reorders the values.
double order_statistic(std::vector<double>& values, std::size_t order) {
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(order - 1);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

double middle_of(std::vector<double>& values) {
  const std::size_t half = values.size() / 2;
  const double upper = order_statistic(values, half + 1);
  return values.size() % 2 == 1 ? upper : order_statistic(values, half) / 2 + upper / 2;
}

/// P(T ≤ t) of the signed-rank statistic of many values by the normal approximation.
class NormalApproximation {
 public:
  NormalApproximation(std::span<const double> values, double centre) {
    const auto n = static_cast<double>(values.size());
    m_mean = n * (n + 1) / 4;
    m_deviation = std::sqrt(n * (n + 1) * (2 * n + 1) / 24 - tie_correction(values, centre));
  }

  double probability_up_to(double t) const {
    if (m_deviation <= 0) {
      return t >= m_mean ? 1 : 0;
    }
    return std::erfc(-(t + 0.5 - m_mean) / (m_deviation * std::sqrt(2.0))) / 2;  // + ½: continuity
  }

 private:
  /// What ties between the distances from the centre take from the variance: Σ (t³ − t) / 48.
  static double tie_correction(std::span<const double> values, double centre) {
    std::vector<double> distances;
    distances.reserve(values.size());
    for (const double value : values) {
      distances.push_back(std::abs(value - centre));
    }
    std::sort(distances.begin(), distances.end());
    double sum = 0;
    for (auto group = distances.begin(); group != distances.end();) {
      const auto end = std::upper_bound(group, distances.end(), *group);
      const auto size = static_cast<double>(end - group);
      sum += (size * size * size - size) / 48;
      group = end;
    }
    return sum;
  }

  double m_mean = 0;
  double m_deviation = 0;
};

/// Which order statistic of the Walsh averages bounds the interval (1 = the smallest), and the confidence it has.
struct Cut {
  std::size_t order = 1;
  double confidence = 0;
};

/// The largest order k with P(T ≤ k − 1) ≤ (1 − confidence) / 2; 1 when there is none.
template <typename Probability>
Cut find_cut(std::size_t averages, double confidence, const Probability& probability_up_to) {
  const double tail = (1 - confidence) / 2;
  std::size_t order = 1;
  // Not beyond the middle: a tail below ½ never gets there.
  while (order < (averages + 1) / 2 && probability_up_to(order) <= tail) {
    ++order;
  }
  return {order, std::max(0.0, 1 - 2 * probability_up_to(order - 1))};
}

}  // namespace

std::vector<double> signed_rank_distribution(int n) {
  if (n < 1 || n > most_exact) {
    throw std::invalid_argument("the signed-rank distribution is counted for 1 to 50 values");
  }
  // ways[t]: subsets of the ranks 1 … n that sum to t. At most 2⁵⁰, which a double holds exactly.
  std::vector<double> ways(static_cast<std::size_t>(n) * static_cast<std::size_t>(n + 1) / 2 + 1, 0.0);
  ways[0] = 1;
  for (std::size_t rank = 1; rank <= static_cast<std::size_t>(n); ++rank) {
    for (std::size_t t = ways.size() - 1; t >= rank; --t) {
      ways[t] += ways[t - rank];
    }
  }
  const double all = std::ldexp(1.0, n);
  double sum = 0;
  for (double& way : ways) {
    sum += way;
    way = sum / all;
  }
  return ways;
}

LocationEstimate estimate_location_with_confidence(std::span<const double> values, double confidence) {
  require_finite(values);
  if (!(confidence > 0 && confidence < 1)) {
    throw std::invalid_argument("a confidence lies between 0 and 1");
  }
  std::vector<double> averages = walsh_averages(values);
  const double centre = middle_of(averages);
  Cut cut;
  if (values.size() <= static_cast<std::size_t>(most_exact)) {
    const std::vector<double> distribution = signed_rank_distribution(static_cast<int>(values.size()));
    cut = find_cut(averages.size(), confidence, [&](std::size_t t) { return distribution[t]; });
  } else {
    const NormalApproximation normal(values, centre);
    cut = find_cut(averages.size(), confidence,
                   [&](std::size_t t) { return normal.probability_up_to(static_cast<double>(t)); });
  }
  const double low = order_statistic(averages, cut.order);
  const double high = order_statistic(averages, averages.size() + 1 - cut.order);
  return {Interval{centre, low, high}, cut.confidence};
}

Interval estimate_location(std::span<const double> values, double confidence) {
  return estimate_location_with_confidence(values, confidence).interval;
}

RatioEstimate estimate_ratio(std::span<const double> baseline, std::span<const double> candidate, double confidence) {
  if (baseline.size() != candidate.size()) {
    throw std::invalid_argument("paired times must be as many of the baseline as of the candidate");
  }
  require_finite(baseline);
  require_finite(candidate);
  std::vector<double> logarithms;
  logarithms.reserve(baseline.size());
  for (std::size_t i = 0; i < baseline.size(); ++i) {
    logarithms.push_back(std::log(std::max(baseline[i], smallest_time) / std::max(candidate[i], smallest_time)));
  }
  const LocationEstimate estimate = estimate_location_with_confidence(logarithms, confidence);
  const Interval& log_ratio = estimate.interval;
  return {Interval{std::exp(log_ratio.estimate), std::exp(log_ratio.low), std::exp(log_ratio.high)},
          estimate.confidence};
}

double quantile(std::span<const double> values, double q) {
  require_finite(values);
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], place - static_cast<double>(below));
}

double median(std::span<const double> values) { return quantile(values, 0.5); }

bool StoppingRule::is_look(int rounds) const { return std::find(looks.begin(), looks.end(), rounds) != looks.end(); }

bool StoppingRule::settled(const Interval& ratio) const {
  return ratio.estimate > 0 && (ratio.high - ratio.low) / 2 <= half_width * ratio.estimate;
}

bool StoppingRule::unstable(const Interval& ratio) const {
  return (ratio.high - ratio.low) / 2 > widest * ratio.estimate;
}

bool StoppingRule::enough(int rounds, double spent, std::span<const Interval> ratios) const {
  if (spent > 10 * patience) return true;
  if (rounds < fewest) return false;
  if (spent > patience) return true;
  return std::all_of(ratios.begin(), ratios.end(),
                     [&](const Interval& ratio) { return spent > budget ? !unstable(ratio) : settled(ratio); });
}

int StoppingRule::most_rounds() const { return looks.empty() ? 0 : looks.back(); }

}  // namespace cuda_agent::judge
