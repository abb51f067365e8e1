#include "device/compare.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace cuda_agent::device {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr float nan_float = std::numeric_limits<float>::quiet_NaN();
constexpr float inf_float = std::numeric_limits<float>::infinity();

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

CompareOptions tolerance(double rtol, double atol) {
  CompareOptions options;
  options.rtol = rtol;
  options.atol = atol;
  return options;
}

template <typename T>
CompareResult compare_flat(DType dtype, const std::vector<T>& expected, const std::vector<T>& got,
                           const CompareOptions& options) {
  const auto count = static_cast<std::int64_t>(expected.size());
  const TensorLayout layout = contiguous(dtype, {count});
  Result<CompareResult> result = compare(bytes_of(expected), layout, bytes_of(got), layout, options);
  EXPECT_TRUE(result) << result.error().message;
  return result.value_or(CompareResult{});
}

std::vector<float> noise(std::size_t count, unsigned seed, float scale = 1.0F) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& value : values) {
    value = normal(engine);
  }
  return values;
}

TEST(Compare, EqualTensorsAreOk) {
  const std::vector<float> values = noise(5000, 1);
  const CompareResult r = compare_flat(DType::float32, values, values, tolerance(0, 0));
  EXPECT_TRUE(r.ok());
  EXPECT_EQ(r.elements, 5000);
  EXPECT_EQ(r.mismatches, 0);
  EXPECT_EQ(r.first_mismatch, -1);
  EXPECT_EQ(r.worst, -1);
  EXPECT_EQ(r.max_abs, 0);
  EXPECT_EQ(r.max_rel, 0);
  EXPECT_TRUE(r.expected_nonzero);
  EXPECT_FALSE(r.got_all_zero);
}

TEST(Compare, FindsASingleWrongElementWhereverItIs) {
  const std::vector<float> expected = noise(4099, 2);
  for (const std::size_t place : {0U, 1U, 7U, 8U, 2047U, 2048U, 4095U, 4096U, 4098U}) {
    std::vector<float> got = expected;
    got[place] += 1.0F;
    const CompareResult r = compare_flat(DType::float32, expected, got, tolerance(1e-2, 1e-2));
    EXPECT_EQ(r.mismatches, 1);
    EXPECT_EQ(r.first_mismatch, static_cast<std::int64_t>(place));
    EXPECT_EQ(r.worst, static_cast<std::int64_t>(place));
    EXPECT_NEAR(r.max_abs, 1.0, 1e-6);
    EXPECT_FALSE(r.ok());
  }
}

TEST(Compare, FirstAndWorstAreReportedWithTheirValues) {
  const std::vector<float> expected = {1, 2, 3, 4, 0.5F};
  const std::vector<float> got = {1, 2.5F, 3, 1, 0.5F};
  const CompareResult r = compare_flat(DType::float32, expected, got, tolerance(1e-2, 1e-2));
  EXPECT_EQ(r.mismatches, 2);
  EXPECT_EQ(r.first_mismatch, 1);
  EXPECT_EQ(r.first_expected, "2");
  EXPECT_EQ(r.first_got, "2.5");
  EXPECT_EQ(r.worst, 3);
  EXPECT_EQ(r.worst_expected, "4");
  EXPECT_EQ(r.worst_got, "1");
  EXPECT_DOUBLE_EQ(r.max_abs, 3);
  EXPECT_DOUBLE_EQ(r.max_rel, 0.75);
  EXPECT_DOUBLE_EQ(r.rms_error, std::sqrt((0.25 + 9) / 5));
  EXPECT_DOUBLE_EQ(r.rms_expected, std::sqrt(30.25 / 5));
  EXPECT_DOUBLE_EQ(r.max_abs_over_rms, 3 / std::sqrt(30.25 / 5));
}

TEST(Compare, TheToleranceIsMetExactly) {
  // RMS 1, so atol counts whole: |1.25 − 1| = 0.25 = 0.125 + 0.125 · 1.
  const std::vector<float> expected(64, 1.0F);
  std::vector<float> got(64, 1.25F);
  EXPECT_TRUE(compare_flat(DType::float32, expected, got, tolerance(0.125, 0.125)).ok());
  got[63] = std::nextafter(1.25F, 2.0F);
  const CompareResult r = compare_flat(DType::float32, expected, got, tolerance(0.125, 0.125));
  EXPECT_EQ(r.mismatches, 1);
  EXPECT_EQ(r.first_mismatch, 63);
}

TEST(Compare, AtolShrinksWithTheRmsOfTheReference) {
  const std::vector<float> expected = noise(1000, 3, 1e-3F);
  std::vector<float> got = expected;
  for (float& value : got) {
    value += 1e-3F;  // far below atol = 1e-2, as large as the values themselves
  }
  EXPECT_FALSE(compare_flat(DType::float32, expected, got, tolerance(0, 1e-2)).ok());
  CompareOptions unscaled = tolerance(0, 1e-2);
  unscaled.scale_atol_by_rms = false;
  EXPECT_TRUE(compare_flat(DType::float32, expected, got, unscaled).ok());
}

TEST(Compare, AtolDoesNotGrowWithTheRmsOfTheReference) {
  const std::vector<float> expected = {1000, 0};
  const std::vector<float> got = {1000, 1};
  EXPECT_FALSE(compare_flat(DType::float32, expected, got, tolerance(0, 1e-2)).ok());
}

TEST(Compare, AReferenceOfZerosHasNoScaleAndKeepsTheWholeAtol) {
  const std::vector<float> expected(10, 0.0F);
  EXPECT_TRUE(compare_flat(DType::float32, expected, std::vector<float>(10, 1e-8F), tolerance(1e-2, 1e-2)).ok());
  EXPECT_FALSE(compare_flat(DType::float32, expected, std::vector<float>(10, 0.1F), tolerance(1e-2, 1e-2)).ok());
}

TEST(Compare, ZerosInPlaceOfValuesFailWhateverTheTolerance) {
  const std::vector<float> expected = noise(100, 4, 1e-3F);
  const std::vector<float> zeros(100, 0.0F);
  const CompareResult r = compare_flat(DType::float32, expected, zeros, tolerance(10, 10));
  EXPECT_EQ(r.mismatches, 0);
  EXPECT_TRUE(r.got_all_zero);
  EXPECT_TRUE(r.expected_nonzero);
  EXPECT_FALSE(r.ok());
  EXPECT_TRUE(compare_flat(DType::float32, zeros, zeros, tolerance(0, 0)).ok());
}

TEST(Compare, NegativeZeroIsZero) {
  const std::vector<float> expected(100, 0.0F);
  const std::vector<float> got(100, -0.0F);
  const CompareResult r = compare_flat(DType::float32, expected, got, tolerance(0, 0));
  EXPECT_TRUE(r.ok());
  EXPECT_TRUE(r.got_all_zero);
}

TEST(Compare, NanMasksMustBeEqual) {
  std::vector<float> expected = noise(100, 5);
  std::vector<float> got = expected;
  expected[40] = nan_float;
  got[40] = -nan_float;
  EXPECT_TRUE(compare_flat(DType::float32, expected, got, tolerance(0, 0)).ok());
  got[41] = nan_float;
  const CompareResult r = compare_flat(DType::float32, expected, got, tolerance(1, 1));
  EXPECT_EQ(r.nan_mismatches, 1);
  EXPECT_EQ(r.mismatches, 1);
  EXPECT_EQ(r.first_mismatch, 41);
  EXPECT_EQ(r.first_got, "nan");
  CompareOptions strict = tolerance(1, 1);
  strict.equal_nan = false;
  EXPECT_EQ(compare_flat(DType::float32, expected, got, strict).nan_mismatches, 2);
}

TEST(Compare, AMissingNanIsAMismatch) {
  const std::vector<float> expected = {1, nan_float, 3};
  const std::vector<float> got = {1, 2, 3};
  EXPECT_EQ(compare_flat(DType::float32, expected, got, tolerance(1, 1)).nan_mismatches, 1);
}

TEST(Compare, InfinitiesMustBeEqualWithSign) {
  const std::vector<float> expected = {1, inf_float, -inf_float, inf_float, 5, inf_float};
  const std::vector<float> got = {1, inf_float, -inf_float, -inf_float, inf_float, 5};
  const CompareResult r = compare_flat(DType::float32, expected, got, tolerance(2, 1));
  EXPECT_EQ(r.mismatches, 3);
  EXPECT_EQ(r.inf_mismatches, 3);
  EXPECT_EQ(r.nan_mismatches, 0);
  EXPECT_EQ(r.first_mismatch, 3);
  EXPECT_EQ(r.first_expected, "inf");
  EXPECT_EQ(r.first_got, "-inf");
}

TEST(Compare, AMaskOfInfinitiesDoesNotHideErrorsBesideIt) {
  std::vector<float> expected = noise(4096, 6);
  for (std::size_t i = 0; i < expected.size(); i += 3) {
    expected[i] = -inf_float;
  }
  std::vector<float> got = expected;
  EXPECT_TRUE(compare_flat(DType::float32, expected, got, tolerance(0, 0)).ok());
  got[4] += 5;
  const CompareResult r = compare_flat(DType::float32, expected, got, tolerance(1e-2, 1e-2));
  EXPECT_EQ(r.mismatches, 1);
  EXPECT_EQ(r.worst, 4);
  EXPECT_TRUE(std::isfinite(r.rms_expected));
}

TEST(Compare, LargeFloatsDoNotOverflow) {
  const std::vector<float> expected(20, 3e38F);
  std::vector<float> got = expected;
  got[3] = -3e38F;
  const CompareResult r = compare_flat(DType::float32, expected, got, tolerance(1e-2, 1e-2));
  EXPECT_EQ(r.mismatches, 1);
  EXPECT_EQ(r.inf_mismatches, 0);
  EXPECT_NEAR(r.max_abs, 6e38, 1e33);
  EXPECT_NEAR(r.rms_expected, 3e38, 1e33);
}

TEST(Compare, LargeAndSmallDoublesKeepTheirRms) {
  for (const double scale : {1e300, 1e-200, 1.0}) {
    const std::vector<double> expected(100, scale);
    std::vector<double> got = expected;
    got[7] = scale * 1.5;
    const CompareResult r = compare_flat(DType::float64, expected, got, tolerance(0, 1e-4));
    EXPECT_NEAR(r.rms_expected / scale, 1, 1e-12);
    EXPECT_NEAR(r.max_abs_over_rms, 0.5, 1e-12);
    EXPECT_EQ(r.first_mismatch, 7);
  }
}

TEST(Compare, RelativeErrorIsInfiniteWhereTheReferenceIsZero) {
  const std::vector<float> expected = {0, 1, 2};
  const std::vector<float> got = {1e-6F, 1, 2};
  const CompareResult r = compare_flat(DType::float32, expected, got, tolerance(1e-2, 1e-2));
  EXPECT_TRUE(r.ok());
  EXPECT_EQ(r.max_rel, infinity);
}

TEST(Compare, IntegersAreExactWhateverTheTolerance) {
  const std::vector<std::int64_t> expected = {1, std::numeric_limits<std::int64_t>::max(), -5};
  std::vector<std::int64_t> got = expected;
  EXPECT_TRUE(compare_flat(DType::int64, expected, got, tolerance(1, 10)).ok());
  got[1] -= 1;  // lost when both are turned into doubles
  const CompareResult r = compare_flat(DType::int64, expected, got, tolerance(1, 10));
  EXPECT_EQ(r.mismatches, 1);
  EXPECT_EQ(r.max_abs, 1);
  EXPECT_EQ(r.first_expected, "9223372036854775807");
  EXPECT_EQ(r.first_got, "9223372036854775806");
}

TEST(Compare, IntegersOfOppositeEndsDoNotOverflow) {
  const std::vector<std::int64_t> low = {std::numeric_limits<std::int64_t>::min()};
  const std::vector<std::int64_t> high = {std::numeric_limits<std::int64_t>::max()};
  EXPECT_NEAR(compare_flat(DType::int64, low, high, tolerance(0, 0)).max_abs, 1.8446744073709552e19, 1e4);
  const std::vector<std::uint64_t> zero = {0};
  const std::vector<std::uint64_t> top = {std::numeric_limits<std::uint64_t>::max()};
  const CompareResult r = compare_flat(DType::uint64, zero, top, tolerance(0, 0));
  EXPECT_EQ(r.mismatches, 1);
  EXPECT_EQ(r.first_got, "18446744073709551615");
}

TEST(Compare, EveryIntegerTypeIsReadWithItsSign) {
  const std::vector<std::int8_t> narrow = {-1, 127};
  EXPECT_EQ(compare_flat(DType::int8, narrow, {-2, 127}, tolerance(0, 0)).first_got, "-2");
  EXPECT_EQ(compare_flat<std::uint8_t>(DType::uint8, {255}, {254}, tolerance(0, 0)).first_expected, "255");
  EXPECT_EQ(compare_flat<std::int16_t>(DType::int16, {-300}, {5}, tolerance(0, 0)).first_expected, "-300");
  EXPECT_EQ(compare_flat<std::uint16_t>(DType::uint16, {65535}, {5}, tolerance(0, 0)).first_expected, "65535");
  EXPECT_EQ(compare_flat<std::int32_t>(DType::int32, {-70000}, {5}, tolerance(0, 0)).first_expected, "-70000");
  EXPECT_EQ(compare_flat<std::uint32_t>(DType::uint32, {4000000000U}, {5}, tolerance(0, 0)).first_expected,
            "4000000000");
}

TEST(Compare, BoolsAreComparedAsTruthValues) {
  const std::vector<std::uint8_t> expected = {0, 1, 1};
  EXPECT_TRUE(compare_flat<std::uint8_t>(DType::boolean, expected, {0, 1, 255}, tolerance(0, 0)).ok());
  const CompareResult r = compare_flat<std::uint8_t>(DType::boolean, expected, {0, 0, 1}, tolerance(1, 1));
  EXPECT_EQ(r.mismatches, 1);
  EXPECT_EQ(r.first_expected, "true");
  EXPECT_EQ(r.first_got, "false");
}

TEST(Compare, ComplexNumbersByModulus) {
  using Complex = std::complex<float>;
  const std::vector<Complex> expected = {{3, 4}, {0, 1}};
  const CompareResult r = compare_flat<Complex>(DType::complex64, expected, {{3, 4}, {3, 5}}, tolerance(1e-2, 1e-2));
  EXPECT_EQ(r.mismatches, 1);
  EXPECT_DOUBLE_EQ(r.max_abs, 5);
  EXPECT_DOUBLE_EQ(r.rms_expected, std::sqrt(26.0 / 2));
  EXPECT_EQ(r.first_expected, "(0+1j)");
  EXPECT_EQ(r.first_got, "(3+5j)");
}

TEST(Compare, ComplexInfinitiesPartByPart) {
  using Complex = std::complex<double>;
  const std::vector<Complex> expected = {{infinity, 1}, {infinity, 1}, {1, 2}};
  EXPECT_TRUE(compare_flat<Complex>(DType::complex128, expected, expected, tolerance(0, 0)).ok());
  const CompareResult r = compare_flat<Complex>(DType::complex128, expected, {{infinity, 9}, {-infinity, 1}, {1, 2}},
                                                tolerance(1e-2, 1e-2));
  EXPECT_EQ(r.mismatches, 2);
  EXPECT_EQ(r.inf_mismatches, 1);
}

TEST(Compare, ComplexHalvesAreReadAsPairs) {
  const std::vector<std::uint16_t> values = {0x3c00, 0xc000};  // 1 − 2i
  const TensorLayout layout = contiguous(DType::complex32, {1});
  EXPECT_EQ(element_text(bytes_of(values), layout, 0).value(), "(1-2j)");
}

TEST(Compare, HalvesAndBfloat16) {
  const std::vector<std::uint16_t> halves = {0x3c00, 0x4000};  // 1, 2
  const CompareResult r = compare_flat<std::uint16_t>(DType::float16, halves, {0x3c00, 0x4200}, tolerance(0, 0));
  EXPECT_DOUBLE_EQ(r.max_abs, 1);
  EXPECT_EQ(r.first_got, "3");
  const std::vector<std::uint16_t> brains = {0x3f80, 0x4000};
  EXPECT_EQ(compare_flat<std::uint16_t>(DType::bfloat16, brains, {0x3f80, 0x4040}, tolerance(0, 0)).first_got, "3");
}

TEST(Compare, Float8) {
  const std::vector<std::uint8_t> one_and_nan = {0x38, 0x7f};
  EXPECT_TRUE(compare_flat<std::uint8_t>(DType::float8_e4m3fn, one_and_nan, {0x38, 0xff}, tolerance(0, 0)).ok());
  const CompareResult r = compare_flat<std::uint8_t>(DType::float8_e4m3fn, one_and_nan, {0x39, 0x7f}, tolerance(0, 0));
  EXPECT_DOUBLE_EQ(r.max_abs, 0.125);
  const std::vector<std::uint8_t> infinite = {0x7c};
  EXPECT_EQ(compare_flat<std::uint8_t>(DType::float8_e5m2, infinite, {0xfc}, tolerance(1, 1)).inf_mismatches, 1);
}

TEST(Compare, EmptyTensorsAreEqual) {
  const std::vector<float> nothing;
  const TensorLayout layout = contiguous(DType::float32, {3, 0});
  const auto r = compare(bytes_of(nothing), layout, bytes_of(nothing), layout, tolerance(0, 0));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->elements, 0);
  EXPECT_TRUE(r->ok());
  EXPECT_FALSE(r->got_all_zero);
}

TEST(Compare, ScalarsAreTensorsOfOneElement) {
  const std::vector<float> one = {1};
  const TensorLayout layout = contiguous(DType::float32, {});
  const auto r = compare(bytes_of(one), layout, bytes_of(one), layout, tolerance(0, 0));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->elements, 1);
}

TEST(Compare, ATransposedResultIsReadInLogicalOrder) {
  const std::vector<float> expected = {1, 2, 3, 4, 5, 6};  // [2, 3]
  const std::vector<float> got = {1, 4, 2, 5, 3, 6};       // the same, column by column
  const TensorLayout by_row = contiguous(DType::float32, {2, 3});
  const TensorLayout by_column{DType::float32, {2, 3}, {1, 2}, 0};
  const auto r = compare(bytes_of(expected), by_row, bytes_of(got), by_column, tolerance(0, 0));
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->ok());
  const auto wrong = compare(bytes_of(expected), by_row, bytes_of(expected), by_column, tolerance(0, 0));
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->first_mismatch, 1);
  EXPECT_EQ(wrong->first_got, "3");
}

TEST(Compare, TheWorstElementOfTransposedTensorsHasItsRowMajorNumber) {
  const std::vector<float> expected = {1, 4, 2, 5, 3, 6};  // [[1, 2, 3], [4, 5, 6]] column by column
  std::vector<float> got = expected;
  got[1] = 9;  // the 4, element 3
  const TensorLayout by_column{DType::float32, {2, 3}, {1, 2}, 0};
  const auto r = compare(bytes_of(expected), by_column, bytes_of(got), by_column, tolerance(0, 0));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->worst, 3);
  EXPECT_EQ(r->worst_expected, "4");
  EXPECT_EQ(r->worst_got, "9");
  EXPECT_EQ(r->first_mismatch, 3);
}

TEST(Compare, TinyFloatsKeepTheirRms) {
  for (const float scale : {1e-15F, 1e-30F, 1e-44F}) {
    const std::vector<float> expected(3000, scale);
    const CompareResult r = compare_flat(DType::float32, expected, expected, tolerance(1e-2, 1e-2));
    EXPECT_NEAR(r.rms_expected / static_cast<double>(scale), 1, 1e-6);
    const std::vector<float> got(3000, 3 * scale);
    EXPECT_EQ(compare_flat(DType::float32, expected, got, tolerance(1e-2, 1e-2)).mismatches, 3000);
  }
}

TEST(Compare, RmsIsPreciseForManyElements) {
  const std::vector<float> expected = noise(1 << 20, 8);
  double squares = 0;
  for (const float value : expected) {
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  const CompareResult r = compare_flat(DType::float32, expected, expected, tolerance(0, 0));
  EXPECT_NEAR(r.rms_expected, std::sqrt(squares / static_cast<double>(expected.size())), 1e-6);
}

TEST(Compare, AnExpandedReferenceIsReadAgainAndAgain) {
  const std::vector<float> row = {1, 2, 3};
  const std::vector<float> got = {1, 2, 3, 1, 2, 3, 1, 2, 9};
  const TensorLayout expanded{DType::float32, {3, 3}, {0, 1}, 0};
  const auto r = compare(bytes_of(row), expanded, bytes_of(got), contiguous(DType::float32, {3, 3}), tolerance(0, 0));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->mismatches, 1);
  EXPECT_EQ(r->first_mismatch, 8);
}

TEST(Compare, OffsetsNeedNoAlignment) {
  const std::vector<float> values = noise(3000, 7);
  std::vector<std::byte> shifted(values.size() * sizeof(float) + 1);
  std::memcpy(shifted.data() + 1, values.data(), values.size() * sizeof(float));
  const auto r = compare(bytes_of(values), contiguous(DType::float32, {3000}), shifted,
                         contiguous(DType::float32, {3000}, 1), tolerance(0, 0));
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->ok());
}

TEST(Compare, ALayoutOutsideOfItsBytesIsRefused) {
  const std::vector<float> values(10);
  const TensorLayout fits = contiguous(DType::float32, {10});
  const TensorLayout late = contiguous(DType::float32, {10}, 4);
  const TensorLayout wide{DType::float32, {10}, {2}, 0};
  const TensorLayout far = contiguous(DType::float32, {10}, std::numeric_limits<std::uint64_t>::max() - 40);
  for (const TensorLayout& bad : {late, wide, far}) {
    EXPECT_FALSE(compare(bytes_of(values), fits, bytes_of(values), bad, tolerance(0, 0)));
    EXPECT_FALSE(compare(bytes_of(values), bad, bytes_of(values), fits, tolerance(0, 0)));
  }
  const auto r = compare(bytes_of(values), fits, bytes_of(values), late, tolerance(0, 0));
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().message.find("40 bytes from offset 4"), std::string::npos) << r.error().message;
}

TEST(Compare, DifferentShapesOrDtypesAreRefused) {
  const std::vector<float> values(10);
  const TensorLayout flat = contiguous(DType::float32, {10});
  EXPECT_FALSE(compare(bytes_of(values), flat, bytes_of(values), contiguous(DType::float32, {2, 5}), tolerance(0, 0)));
  EXPECT_FALSE(compare(bytes_of(values), flat, bytes_of(values), contiguous(DType::int32, {10}), tolerance(0, 0)));
}

TEST(ElementText, RefusesAnElementOutside) {
  const std::vector<float> values = {1, 0.1F};
  const TensorLayout layout = contiguous(DType::float32, {2});
  EXPECT_EQ(element_text(bytes_of(values), layout, 1).value(), "0.1");
  EXPECT_FALSE(element_text(bytes_of(values), layout, 2));
  EXPECT_FALSE(element_text(bytes_of(values), layout, -1));
}

/// The rule written down once more, slowly.
struct Slow {
  std::int64_t mismatches = 0;
  std::int64_t first = -1;
  double max_abs = 0;
  double max_rel = 0;
};

double element(const std::vector<float>& values, const TensorLayout& layout, std::int64_t flat) {
  const std::vector<std::int64_t> index = unravel(flat, layout.shape);
  std::int64_t place = static_cast<std::int64_t>(layout.offset / sizeof(float));
  for (std::size_t i = 0; i < index.size(); ++i) {
    place += index[i] * layout.stride[i];
  }
  return static_cast<double>(values[static_cast<std::size_t>(place)]);
}

Slow slow_compare(const std::vector<float>& expected, const TensorLayout& expected_layout,
                  const std::vector<float>& got, const TensorLayout& got_layout, double rtol, double atol) {
  const std::int64_t count = numel(expected_layout);
  double squares = 0;
  std::int64_t finite = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double b = element(expected, expected_layout, i);
    squares += std::isfinite(b) ? b * b : 0;
    finite += std::isfinite(b) ? 1 : 0;
  }
  const double rms = finite == 0 ? 0 : std::sqrt(squares / static_cast<double>(finite));
  Slow slow;
  for (std::int64_t i = 0; i < count; ++i) {
    const double a = element(got, got_layout, i);
    const double b = element(expected, expected_layout, i);
    bool good = a == b || (std::isnan(a) && std::isnan(b));
    if (std::isfinite(a) && std::isfinite(b)) {
      good = std::abs(a - b) <= atol * (rms > 0 ? std::min(1.0, rms) : 1.0) + rtol * std::abs(b);
      slow.max_abs = std::max(slow.max_abs, std::abs(a - b));
      slow.max_rel = std::max(slow.max_rel, a == b ? 0.0 : std::abs(a - b) / std::abs(b));
    }
    slow.mismatches += good ? 0 : 1;
    slow.first = !good && slow.first < 0 ? i : slow.first;
  }
  return slow;
}

/// A layout of `shape` with padded, permuted or expanded dimensions.
TensorLayout random_layout(const std::vector<std::int64_t>& shape, std::mt19937& engine) {
  std::vector<std::size_t> order(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  if (engine() % 2 == 0) {
    std::shuffle(order.begin(), order.end(), engine);
  }
  TensorLayout layout{DType::float32, shape, std::vector<std::int64_t>(shape.size()), 4 * (engine() % 3)};
  std::int64_t stride = 1 + engine() % 2;
  for (std::size_t i = order.size(); i-- > 0;) {
    layout.stride[order[i]] = engine() % 5 == 0 ? 0 : stride;
    stride *= shape[order[i]] + (engine() % 3 == 0 ? 1 : 0);
  }
  return layout;
}

TEST(Compare, AgreesWithTheRuleOnRandomLayoutsAndValues) {
  std::mt19937 engine(20240607);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int64_t> shape(engine() % 5);
    for (std::int64_t& size : shape) {
      size = 1 + engine() % 9;
    }
    if (!shape.empty() && engine() % 3 == 0) {
      shape.back() = 900 + engine() % 900;
    }
    const TensorLayout a_layout = random_layout(shape, engine);
    const TensorLayout b_layout = random_layout(shape, engine);
    const auto size_of = [](const TensorLayout& layout) { return (layout.offset + *extent_bytes(layout)) / 4; };
    const float scale = engine() % 2 == 0 ? 1.0F : 1e-3F;
    const std::vector<float> base =
        noise(std::max(size_of(a_layout), size_of(b_layout)), static_cast<unsigned>(engine()), scale);
    std::vector<float> a(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(size_of(a_layout)));
    std::vector<float> b(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(size_of(b_layout)));
    for (float& value : a) {
      value *= 1 + 0.02F * static_cast<float>(engine() % 1000) / 1000;
      if (engine() % 211 == 0) {
        value = engine() % 2 == 0 ? nan_float : inf_float;
      }
    }
    const Slow slow = slow_compare(b, b_layout, a, a_layout, 1e-2, 1e-3);
    const auto fast = compare(bytes_of(b), b_layout, bytes_of(a), a_layout, tolerance(1e-2, 1e-3));
    ASSERT_TRUE(fast) << fast.error().message;
    EXPECT_EQ(fast->mismatches, slow.mismatches) << "round " << round;
    EXPECT_EQ(fast->first_mismatch, slow.first) << "round " << round;
    if (slow.max_abs > 0) {
      const auto at_worst = std::abs(element(a, a_layout, fast->worst) - element(b, b_layout, fast->worst));
      EXPECT_NEAR(at_worst, slow.max_abs, 1e-6 * slow.max_abs) << "round " << round;
    }
    EXPECT_NEAR(fast->max_abs, slow.max_abs, 1e-6 * slow.max_abs) << "round " << round;
    EXPECT_NEAR(fast->max_rel, slow.max_rel, 1e-5 * slow.max_rel) << "round " << round;
  }
}

}  // namespace
}  // namespace cuda_agent::device
