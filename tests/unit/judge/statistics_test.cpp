#include "judge/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

namespace cuda_agent::judge {
namespace {

TEST(SignedRankDistribution, AgreesWithCountingAllSigns) {
  for (int n = 1; n <= 12; ++n) {
    std::vector<double> count(static_cast<std::size_t>(n * (n + 1) / 2 + 1));
    for (unsigned signs = 0; signs < (1U << static_cast<unsigned>(n)); ++signs) {
      std::size_t sum = 0;
      for (int rank = 1; rank <= n; ++rank) {
        sum += (signs >> static_cast<unsigned>(rank - 1) & 1U) != 0 ? static_cast<std::size_t>(rank) : 0;
      }
      count[sum] += 1;
    }
    const std::vector<double> distribution = signed_rank_distribution(n);
    ASSERT_EQ(distribution.size(), count.size());
    double below = 0;
    for (std::size_t t = 0; t < count.size(); ++t) {
      below += count[t];
      EXPECT_DOUBLE_EQ(distribution[t], below / std::ldexp(1.0, n)) << "n " << n << " t " << t;
    }
  }
}

TEST(SignedRankDistribution, EndsAtOneForTheLargestExactSize) {
  EXPECT_DOUBLE_EQ(signed_rank_distribution(50).back(), 1.0);
  EXPECT_THROW(signed_rank_distribution(51), std::invalid_argument);
  EXPECT_THROW(signed_rank_distribution(0), std::invalid_argument);
}

TEST(Location, IsTheMedianOfPairwiseMeans) {
  // Walsh averages of 1, 2, 10: 1, 1.5, 2, 5.5, 6, 10.
  const std::vector<double> values = {10, 1, 2};
  EXPECT_DOUBLE_EQ(estimate_location(values, 0.5).estimate, (2 + 5.5) / 2);
}

TEST(Location, AgreesWithInvertingTheTestByHand) {
  // The interval holds every centre that the two-sided signed-rank test does not reject.
  std::mt19937 engine(7);
  std::normal_distribution<double> normal(3, 1);
  for (const int n : {6, 9, 12, 20}) {
    std::vector<double> values(static_cast<std::size_t>(n));
    std::generate(values.begin(), values.end(), [&] { return normal(engine); });
    const double confidence = 0.95;
    const Interval interval = estimate_location(values, confidence);
    const std::vector<double> distribution = signed_rank_distribution(n);
    const auto accepted = [&](double centre) {
      std::vector<double> from_centre = values;
      std::sort(from_centre.begin(), from_centre.end(),
                [&](double a, double b) { return std::abs(a - centre) < std::abs(b - centre); });
      std::size_t positive = 0;
      for (std::size_t rank = 1; rank <= from_centre.size(); ++rank) {
        positive += from_centre[rank - 1] > centre ? rank : 0;
      }
      const std::size_t all = from_centre.size() * (from_centre.size() + 1) / 2;
      return distribution[std::min(positive, all - positive)] > (1 - confidence) / 2;
    };
    const double step = 1e-9;
    EXPECT_TRUE(accepted(interval.low + step)) << n;
    EXPECT_FALSE(accepted(interval.low - step)) << n;
    EXPECT_TRUE(accepted(interval.high - step)) << n;
    EXPECT_FALSE(accepted(interval.high + step)) << n;
  }
}

TEST(Location, GivesTheConfidenceThatItReaches) {
  std::vector<double> values = {1, 2, 3, 4, 5, 6, 7, 8};
  const LocationEstimate few = estimate_location_with_confidence(values, 0.995);
  EXPECT_DOUBLE_EQ(few.confidence, 1 - 2.0 / 256);  // below the one asked for
  EXPECT_EQ(few.interval.low, 1);
  EXPECT_EQ(few.interval.high, 8);
  values.push_back(9);
  const LocationEstimate enough = estimate_location_with_confidence(values, 0.995);
  EXPECT_GE(enough.confidence, 0.995);
  EXPECT_DOUBLE_EQ(enough.confidence, 1 - 2.0 / 512);
}

TEST(Location, OfOneValueIsThatValue) {
  const std::vector<double> one = {4.5};
  const LocationEstimate estimate = estimate_location_with_confidence(one, 0.99);
  EXPECT_EQ(estimate.interval.estimate, 4.5);
  EXPECT_EQ(estimate.interval.low, 4.5);
  EXPECT_EQ(estimate.interval.high, 4.5);
  EXPECT_EQ(estimate.confidence, 0);
}

TEST(Location, OfEqualValuesIsAPoint) {
  for (const std::size_t n : {12U, 80U}) {
    const std::vector<double> same(n, 2.5);
    const Interval interval = estimate_location(same, 0.995);
    EXPECT_EQ(interval.low, 2.5);
    EXPECT_EQ(interval.estimate, 2.5);
    EXPECT_EQ(interval.high, 2.5);
  }
}

TEST(Location, IsHardlyMovedByAnOutlier) {
  std::vector<double> values(24);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = 100 + 0.01 * static_cast<double>(i);
  }
  const double before = estimate_location(values, 0.95).estimate;
  values[3] = 1e6;
  EXPECT_NEAR(estimate_location(values, 0.95).estimate, before, 0.02);
}

TEST(Location, TheApproximationContinuesTheExactIntervals) {
  std::mt19937 engine(11);
  std::normal_distribution<double> normal(0, 1);
  std::vector<double> values(50);
  std::generate(values.begin(), values.end(), [&] { return normal(engine); });
  const Interval exact = estimate_location(values, 0.99);
  values.push_back(exact.estimate);
  const LocationEstimate approximate = estimate_location_with_confidence(values, 0.99);
  EXPECT_NEAR(approximate.interval.low, exact.low, 0.03);
  EXPECT_NEAR(approximate.interval.high, exact.high, 0.03);
  EXPECT_GE(approximate.confidence, 0.99);
  EXPECT_LT(approximate.confidence, 0.9915);
}

TEST(Location, RefusesWhatHasNoAnswer) {
  const std::vector<double> nothing;
  const std::vector<double> bad = {1, std::numeric_limits<double>::quiet_NaN()};
  const std::vector<double> good = {1, 2};
  EXPECT_THROW(estimate_location(nothing, 0.9), std::invalid_argument);
  EXPECT_THROW(estimate_location(bad, 0.9), std::invalid_argument);
  EXPECT_THROW(estimate_location(good, 1.0), std::invalid_argument);
  EXPECT_THROW(estimate_location(good, 0.0), std::invalid_argument);
}

/// Uniform on (0, 1) from bits, so that the sequence is the same with every standard library.
double uniform(std::mt19937_64& engine) { return (static_cast<double>(engine() >> 11U) + 0.5) * 0x1p-53; }

double normal(std::mt19937_64& engine) {
  return std::sqrt(-2 * std::log(uniform(engine))) * std::cos(2 * 3.14159265358979323846 * uniform(engine));
}

/// The share of intervals that hold the true ratio, of rounds with common drift and noise of `draw`.
template <typename Draw>
double coverage(int rounds, double confidence, const Draw& draw) {
  std::mt19937_64 engine(123456789);
  constexpr int repetitions = 2000;
  constexpr double truth = 1.07;
  int held = 0;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    std::vector<double> baseline;
    std::vector<double> candidate;
    for (int round = 0; round < rounds; ++round) {
      const double drift = std::exp(0.2 * normal(engine));  // hits both arms of a round alike
      baseline.push_back(100 * truth * drift * std::exp(draw(engine)));
      candidate.push_back(100 * drift * std::exp(draw(engine)));
    }
    const Interval ratio = estimate_ratio(baseline, candidate, confidence).ratio;
    held += ratio.low <= truth && truth <= ratio.high ? 1 : 0;
  }
  return static_cast<double>(held) / repetitions;
}

TEST(Ratio, TheIntervalHoldsTheTruthAsOftenAsItSays) {
  const auto gaussian = [](std::mt19937_64& engine) { return 0.01 * normal(engine); };
  // A third of the calls meet something that costs up to 10 %.
  const auto disturbed = [](std::mt19937_64& engine) {
    return 0.002 * normal(engine) + (uniform(engine) < 0.3 ? 0.1 * uniform(engine) : 0.0);
  };
  for (const int rounds : {8, 12, 24, 64}) {
    // Three standard errors of 2000 repetitions below; discrete steps make small samples conservative.
    EXPECT_GT(coverage(rounds, 0.90, gaussian), 0.88) << rounds;
    EXPECT_GT(coverage(rounds, 0.90, disturbed), 0.88) << rounds;
    EXPECT_LT(coverage(rounds, 0.90, gaussian), 0.95) << rounds;
  }
  EXPECT_GT(coverage(12, 0.995, gaussian), 0.99);
}

TEST(Ratio, IsBaselineOverCandidate) {
  const std::vector<double> baseline(10, 30.0);
  const std::vector<double> candidate(10, 20.0);
  const RatioEstimate estimate = estimate_ratio(baseline, candidate, 0.99);
  EXPECT_NEAR(estimate.ratio.estimate, 1.5, 1e-12);
  EXPECT_NEAR(estimate.ratio.low, 1.5, 1e-12);
  EXPECT_NEAR(estimate.ratio.high, 1.5, 1e-12);
}

TEST(Ratio, SwappingTheArmsInvertsIt) {
  const std::vector<double> a = {10, 11, 12, 10.5, 11.5, 10.2, 13, 12.5, 11.1};
  const std::vector<double> b = {7, 8, 9.5, 7.1, 8.8, 7.7, 9, 8.1, 8.3};
  const Interval forth = estimate_ratio(a, b, 0.95).ratio;
  const Interval back = estimate_ratio(b, a, 0.95).ratio;
  EXPECT_NEAR(forth.estimate * back.estimate, 1, 1e-12);
  EXPECT_NEAR(forth.low * back.high, 1, 1e-12);
  EXPECT_NEAR(forth.high * back.low, 1, 1e-12);
}

TEST(Ratio, DriftThatHitsBothArmsDoesNotWidenIt) {
  std::vector<double> baseline;
  std::vector<double> candidate;
  for (int round = 0; round < 12; ++round) {
    const double clock = 1 + 0.1 * round;
    baseline.push_back(50 * clock);
    candidate.push_back(40 * clock);
  }
  const Interval ratio = estimate_ratio(baseline, candidate, 0.995).ratio;
  EXPECT_NEAR(ratio.high - ratio.low, 0, 1e-12);
}

TEST(Ratio, TimesWithinTheOverheadStayFinite) {
  const std::vector<double> baseline = {5, 5, -0.2, 5, 5, 5, 5, 5, 5, 5};
  const std::vector<double> candidate = {2, 2, 0, 2, 2, 2, 2, -1, 2, 2};
  const Interval ratio = estimate_ratio(baseline, candidate, 0.9).ratio;
  EXPECT_TRUE(std::isfinite(ratio.high));
  EXPECT_NEAR(ratio.estimate, 2.5, 1e-9);
}

TEST(Ratio, RefusesUnpairedTimes) {
  const std::vector<double> two = {1, 2};
  const std::vector<double> three = {1, 2, 3};
  EXPECT_THROW(estimate_ratio(two, three, 0.9), std::invalid_argument);
}

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  const std::vector<double> values = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 4);
  EXPECT_DOUBLE_EQ(median(values), 2.5);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 1.75);
}

TEST(StoppingRule, LooksAtTheRoundsOfTheDesignOnly) {
  const StoppingRule rule;
  for (int rounds = 0; rounds <= 60; ++rounds) {
    const bool look = rounds == 8 || rounds == 12 || rounds == 16 || rounds == 24 || rounds == 32 || rounds == 48;
    EXPECT_EQ(rule.is_look(rounds), look) << rounds;
  }
  EXPECT_EQ(rule.most_rounds(), 48);
}

TEST(StoppingRule, SettlesAtOnePercentHalfWidth) {
  const StoppingRule rule;
  EXPECT_TRUE(rule.settled({2.0, 1.981, 2.019}));
  EXPECT_FALSE(rule.settled({2.0, 1.979, 2.021}));
  EXPECT_FALSE(rule.settled({0, 0, 0}));
}

TEST(StoppingRule, StopsWhenSettledLaterWhenStableAndAtLastInAnyCase) {
  StoppingRule rule;
  rule.budget = 1;
  rule.patience = 3;
  std::vector<Interval> const narrow = {{1, 0.995, 1.005}};
  std::vector<Interval> const usable = {{1, 0.995, 1.005}, {1, 0.97, 1.03}};
  std::vector<Interval> const unstable = {{1, 0.995, 1.005}, {1, 0.9, 1.1}};
  EXPECT_TRUE(rule.enough(12, 0.1, narrow));
  EXPECT_FALSE(rule.enough(8, 0.1, narrow)) << "too few rounds for an interval of this confidence";
  EXPECT_FALSE(rule.enough(12, 0.9, usable));
  EXPECT_TRUE(rule.enough(12, 1.1, usable));
  EXPECT_FALSE(rule.enough(12, 2.9, unstable));
  EXPECT_TRUE(rule.enough(12, 3.1, unstable));
  EXPECT_FALSE(rule.enough(8, 29, unstable));
  EXPECT_TRUE(rule.enough(8, 31, unstable));
}

TEST(StoppingRule, IsUnstableAboveFivePercentHalfWidth) {
  const StoppingRule rule;
  EXPECT_FALSE(rule.unstable({2.0, 1.901, 2.099}));
  EXPECT_TRUE(rule.unstable({2.0, 1.899, 2.101}));
  EXPECT_TRUE(rule.unstable({2.0, 1.99, 2.5}));
}

}  // namespace
}  // namespace cuda_agent::judge
