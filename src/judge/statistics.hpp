// Estimates with intervals from few timed rounds, without an assumption about the shape of the noise beyond symmetry:
// Hodges–Lehmann estimate and the interval that inverts Wilcoxon's signed-rank test (docs/verdict.md has the sources).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cuda_agent/verdict.hpp"

namespace cuda_agent::judge {

/// An interval and the confidence that it really has.
struct LocationEstimate {
  Interval interval;
  double confidence = 0;  ///< below the one asked for when there are too few values: then the widest interval is given
};

/// Hodges–Lehmann estimate of the centre of `values` (the median of all pairwise means, each value with itself
/// included) with its signed-rank interval: exact up to 50 values, the normal approximation with continuity and tie
/// correction above. Takes n²/2 time and memory. Throws std::invalid_argument for no values, one that is not finite, or
/// a confidence outside (0, 1).
LocationEstimate estimate_location_with_confidence(std::span<const double> values, double confidence);

/// The same without the confidence reached: an arm's own time, in the unit of `values`.
Interval estimate_location(std::span<const double> values, double confidence);

/// baseline time / candidate time.
struct RatioEstimate {
  Interval ratio;
  double confidence = 0;  ///< reached, see LocationEstimate
};

/// Times at or below this many microseconds count as this much: what is left after subtracting the overhead of an
/// empty call can be 0 or less, and has no logarithm.
inline constexpr double smallest_time = 1e-3;

/// Estimates baseline / candidate from times in microseconds paired by round: the location of log(baseline /
/// candidate), taken back by exp. Throws std::invalid_argument when the sizes differ, for no rounds, or a time that
/// is not finite.
RatioEstimate estimate_ratio(std::span<const double> baseline, std::span<const double> candidate, double confidence);

/// The q-quantile, interpolated linearly between order statistics (R's type 7); q in [0, 1]. Throws
/// std::invalid_argument for no values.
double quantile(std::span<const double> values, double q);
double median(std::span<const double> values);

/// When an ask may stop before its last round. Looking only at a few fixed rounds, each with a high confidence, keeps
/// the chance small that one of the looks is wrong.
struct StoppingRule {
  std::vector<int> looks = {8, 12, 16, 24, 32, 48};  ///< rounds done, ascending
  double confidence = 0.995;
  double half_width = 0.01;  ///< relative to the estimate
  double widest = 0.05;      ///< likewise
  int fewest = 12;           ///< rounds: the Wilcoxon interval at 99.5 % is finite from 9 on
  double budget = 1.0;       ///< seconds; after them the next look at which nothing is unstable is the last
  double patience = 1.0;     ///< seconds; after them the next look is the last

  bool is_look(int rounds) const;
  /// (high − low) / 2 ≤ half_width · estimate.
  bool settled(const Interval& ratio) const;
  /// (high − low) / 2 > widest · estimate: too wide to say much about the 5 % that a milestone asks for.
  bool unstable(const Interval& ratio) const;
  /// Whether this look is the last: `spent` seconds after the first round began, with these ratios. Where rounds are so
  /// long that the fewest take ten times the patience, what there is has to do.
  bool enough(int rounds, double spent, std::span<const Interval> ratios) const;
  /// Rounds after which an ask ends whatever its interval.
  int most_rounds() const;
};

/// P(T ≤ t) for t = 0 … n(n+1)/2 where T is Wilcoxon's signed-rank statistic of n values without ties. 0 < n ≤ 50.
std::vector<double> signed_rank_distribution(int n);

}  // namespace cuda_agent::judge
