#include "device/compare.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include <spdlog/fmt/fmt.h>

#include "device/cpu/block_reader.hpp"
#include "device/cpu/block_statistics.hpp"
#include "device/cpu/elements.hpp"

namespace cuda_agent::device {
namespace {

enum class Kind { finite, alike /* NaN on both sides, the same infinities */, nan_mismatch, inf_mismatch };

/// What two elements are to each other. `error` and `size` (of the reference) are of their finite parts.
struct Difference {
  Kind kind = Kind::finite;
  double error = 0;
  double size = 0;
};

template <typename Value>
constexpr bool is_exact = std::is_integral_v<Value>;

template <typename Value>
constexpr bool has_fast_path = std::is_floating_point_v<Value>;

bool is_nan(double value) { return std::isnan(value); }
bool is_nan(const std::complex<double>& value) { return std::isnan(value.real()) || std::isnan(value.imag()); }
bool is_finite(double value) { return std::isfinite(value); }
bool is_finite(const std::complex<double>& value) { return std::isfinite(value.real()) && std::isfinite(value.imag()); }

/// For two numbers without NaN: whether their infinities are the same; takes these out of both.
bool take_infinities(double& a, double& b) {
  if (std::isfinite(a) && std::isfinite(b)) {
    return true;
  }
  const bool same = a == b;
  a = 0;
  b = 0;
  return same;
}

bool take_infinities(std::complex<double>& a, std::complex<double>& b) {
  double parts_a[] = {a.real(), a.imag()};
  double parts_b[] = {b.real(), b.imag()};
  const bool real = take_infinities(parts_a[0], parts_b[0]);
  const bool imaginary = take_infinities(parts_a[1], parts_b[1]);
  a = {parts_a[0], parts_a[1]};
  b = {parts_b[0], parts_b[1]};
  return real && imaginary;
}

template <typename Value>
Difference difference(Value expected, Value got, bool equal_nan) {
  if constexpr (is_exact<Value>) {
    // Unsigned: the difference of two 64-bit integers may not fit a signed one.
    const auto high = static_cast<std::uint64_t>(std::max(expected, got));
    const auto low = static_cast<std::uint64_t>(std::min(expected, got));
    return {Kind::finite, static_cast<double>(high - low), std::abs(static_cast<double>(expected))};
  } else {
    if (is_nan(expected) || is_nan(got)) {
      const bool alike = equal_nan && is_nan(expected) && is_nan(got);
      return {alike ? Kind::alike : Kind::nan_mismatch};
    }
    const bool finite = is_finite(expected) && is_finite(got);
    if (!take_infinities(expected, got)) {
      return {Kind::inf_mismatch};
    }
    return {finite ? Kind::finite : Kind::alike, std::abs(got - expected), std::abs(expected)};
  }
}

/// Floats are compared in double, so that the tolerance is met exactly.
template <typename Value>
auto widened(Value value) {
  if constexpr (std::is_same_v<Value, float>) {
    return static_cast<double>(value);
  } else {
    return value;
  }
}

/// A double as a float or double; what does not fit becomes infinite.
template <typename Value>
Value narrowed(double value) {
  return value > static_cast<double>(std::numeric_limits<Value>::max()) ? std::numeric_limits<Value>::infinity()
                                                                        : static_cast<Value>(value);
}

double ratio_of(const Difference& seen) {
  if (seen.error == 0) {
    return 0;
  }
  return seen.size == 0 ? std::numeric_limits<double>::infinity() : seen.error / seen.size;
}

/// The dimensions, those with the largest strides first.
std::vector<std::size_t> memory_order(const TensorLayout& layout) {
  std::vector<std::size_t> order(layout.shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!is_contiguous(layout)) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return layout.stride[a] > layout.stride[b]; });
  }
  return order;
}

TensorLayout permuted(const TensorLayout& layout, const std::vector<std::size_t>& order) {
  TensorLayout result{layout.dtype, {}, {}, layout.offset};
  for (const std::size_t dimension : order) {
    result.shape.push_back(layout.shape[dimension]);
    result.stride.push_back(layout.stride[dimension]);
  }
  return result;
}

/// The row-major number of the element that has number `flat` when the dimensions are taken in `order`.
std::int64_t back_in_row_major_order(std::int64_t flat, const std::vector<std::int64_t>& shape,
                                     const std::vector<std::size_t>& order) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t i = order.size(); i-- > 0;) {
    index[order[i]] = flat % shape[order[i]];
    flat /= shape[order[i]];
  }
  std::int64_t result = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    result = result * shape[i] + index[i];
  }
  return result;
}

/// Compares tensors whose layouts are known to be good. One for each type that numbers are compared as; what they are
/// stored as is known to the readers alone, so that there are few of these.
template <typename Value>
class Comparison {
 public:
  using OpenReader = std::unique_ptr<BlockSource<Value>> (*)(std::span<const std::byte>, const TensorLayout&);

  Comparison(OpenReader open_reader, std::span<const std::byte> expected, const TensorLayout& expected_layout,
             std::span<const std::byte> got, const TensorLayout& got_layout, const CompareOptions& options)
      : m_open_reader(open_reader),
        m_order(memory_order(expected_layout)),
        m_expected(expected),
        m_expected_layout(expected_layout),
        m_got(got),
        m_got_layout(got_layout),
        m_options(options),
        m_elements(numel(expected_layout)) {
    m_result.elements = m_elements;
  }

  CompareResult run() {
    if (m_elements == 0) {
      return m_result;
    }
    // The first pass does not care for the order: it goes through memory, as far as both sides lie alike.
    const auto measuring = [this](const Value* expected, const Value* got, std::int64_t count, std::int64_t first) {
      measure(expected, got, count, first);
    };
    for_each_block(permuted(m_expected_layout, m_order), permuted(m_got_layout, m_order), measuring);
    finish_statistics();
    // Most results are within the absolute part alone: then the first pass has shown that nothing is out of tolerance.
    if (m_not_alike || m_result.max_abs > m_atol * (1 - slack)) {
      const auto counting = [this](const Value* expected, const Value* got, std::int64_t count, std::int64_t first) {
        count_mismatches(expected, got, count, first);
      };
      for_each_block(m_expected_layout, m_got_layout, counting);
    }
    return m_result;
  }

 private:
  // What the vector loops may be off by; inside of it the exact comparison decides.
  static constexpr double slack = std::is_same_v<Value, float> ? 1e-6 : 1e-14;
  // Sums of squares below this may have lost digits to underflow.
  static constexpr double smallest_square = std::is_same_v<Value, float> ? 1e-25 : 1e-250;

  template <typename Use>
  void for_each_block(const TensorLayout& expected_layout, const TensorLayout& got_layout, const Use& use) {
    const auto expected = m_open_reader(m_expected, expected_layout);
    const auto got = m_open_reader(m_got, got_layout);
    for (std::int64_t first = 0; first < m_elements; first += block_elements) {
      const std::int64_t count = std::min(block_elements, m_elements - first);
      const Value* expected_block = expected->next(count);
      use(expected_block, got->next(count), count, first);
    }
  }

  void measure(const Value* expected, const Value* got, std::int64_t count, std::int64_t first) {
    const auto nonzero = [](const Value& value) { return value != Value{}; };
    m_result.expected_nonzero = m_result.expected_nonzero || std::any_of(expected, expected + count, nonzero);
    m_got_nonzero = m_got_nonzero || std::any_of(got, got + count, nonzero);
    if constexpr (has_fast_path<Value>) {
      // A little above, so that rounding does not report the same ratio again and again.
      const auto ratio = narrowed<Value>(m_result.max_rel * (1 + slack));
      const auto sums = measure_block<Value>(expected, got, count, ratio);
      if (std::isfinite(sums.squared_error) && std::isfinite(sums.squared_expected) &&
          (sums.squared_expected >= smallest_square || std::none_of(expected, expected + count, nonzero))) {
        m_squared_error += sums.squared_error;
        m_squared_expected += sums.squared_expected;
        m_finite_pairs += count;
        m_finite_expected += count;
        // Rare once the first blocks have set the marks.
        if (sums.max_error > narrowed<Value>(m_result.max_abs) || sums.above_ratio) {
          raise_marks(expected, got, count, first);
        }
        return;
      }
    }
    measure_each(expected, got, count, first);
  }

  void raise_marks(const Value* expected, const Value* got, std::int64_t count, std::int64_t first) {
    for (std::int64_t i = 0; i < count; ++i) {
      raise_marks(difference(widened(expected[i]), widened(got[i]), m_options.equal_nan), first + i);
    }
  }

  void raise_marks(const Difference& seen, std::int64_t flat) {
    m_result.max_rel = std::max(m_result.max_rel, ratio_of(seen));
    if (seen.error > m_result.max_abs) {
      m_result.max_abs = seen.error;
      m_result.worst = flat;
    }
  }

  void measure_each(const Value* expected, const Value* got, std::int64_t count, std::int64_t first) {
    for (std::int64_t i = 0; i < count; ++i) {
      const Difference seen = difference(widened(expected[i]), widened(got[i]), m_options.equal_nan);
      if constexpr (is_exact<Value>) {
        add_expected(seen.size);
      } else if (is_finite(expected[i])) {
        add_expected(std::abs(widened(expected[i])));
      }
      switch (seen.kind) {
        case Kind::finite:
          m_squared_error += static_cast<long double>(seen.error) * seen.error;
          ++m_finite_pairs;
          raise_marks(seen, first + i);
          break;
        case Kind::alike:
          raise_marks(seen, first + i);  // the finite part of a complex number
          break;
        case Kind::nan_mismatch:
        case Kind::inf_mismatch:
          m_not_alike = true;
          break;
      }
    }
  }

  void add_expected(double size) {
    m_squared_expected += static_cast<long double>(size) * size;
    ++m_finite_expected;
  }

  void finish_statistics() {
    CompareResult& r = m_result;
    r.got_all_zero = !m_got_nonzero;
    const auto root_mean = [](long double sum, std::int64_t count) {
      return count == 0 ? 0.0 : static_cast<double>(std::sqrt(sum / static_cast<long double>(count)));
    };
    r.rms_expected = root_mean(m_squared_expected, m_finite_expected);
    r.rms_error = root_mean(m_squared_error, m_finite_pairs);
    r.finite = m_finite_pairs;
    if (r.max_abs > 0) {
      r.max_abs_over_rms = r.rms_expected > 0 ? r.max_abs / r.rms_expected : std::numeric_limits<double>::infinity();
    }
    if (!is_exact<Value>) {
      const bool scaled = m_options.scale_atol_by_rms && r.rms_expected > 0;
      m_atol = m_options.atol * (scaled ? std::min(1.0, r.rms_expected) : 1.0);
      m_rtol = m_options.rtol;
    }
    if (r.worst >= 0) {
      r.worst = back_in_row_major_order(r.worst, m_expected_layout.shape, m_order);
      r.worst_expected = text(m_expected, m_expected_layout, r.worst);
      r.worst_got = text(m_got, m_got_layout, r.worst);
    }
  }

  void count_mismatches(const Value* expected, const Value* got, std::int64_t count, std::int64_t first) {
    if constexpr (has_fast_path<Value>) {
      if (block_within<Value>(expected, got, count, narrowed<Value>(m_rtol * (1 - 2 * slack)),
                              narrowed<Value>(m_atol * (1 - 2 * slack)))) {
        return;
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const Difference seen = difference(widened(expected[i]), widened(got[i]), m_options.equal_nan);
      const bool not_alike = seen.kind == Kind::nan_mismatch || seen.kind == Kind::inf_mismatch;
      if (!not_alike && seen.error <= m_atol + m_rtol * seen.size) {
        continue;
      }
      ++m_result.mismatches;
      m_result.nan_mismatches += seen.kind == Kind::nan_mismatch ? 1 : 0;
      m_result.inf_mismatches += seen.kind == Kind::inf_mismatch ? 1 : 0;
      if (m_result.first_mismatch < 0) {
        m_result.first_mismatch = first + i;
        m_result.first_expected = text(m_expected, m_expected_layout, first + i);
        m_result.first_got = text(m_got, m_got_layout, first + i);
      }
    }
  }

  static std::string text(std::span<const std::byte> bytes, const TensorLayout& layout, std::int64_t flat) {
    return element_text(bytes, layout, flat).value_or("");
  }

  OpenReader m_open_reader;
  std::vector<std::size_t> m_order;  // of the dimensions, in the first pass
  std::span<const std::byte> m_expected;
  const TensorLayout& m_expected_layout;
  std::span<const std::byte> m_got;
  const TensorLayout& m_got_layout;
  const CompareOptions& m_options;
  std::int64_t m_elements;
  CompareResult m_result;
  bool m_got_nonzero = false;
  bool m_not_alike = false;  // some NaN or infinity has no partner
  std::int64_t m_finite_expected = 0;
  std::int64_t m_finite_pairs = 0;
  // long double: squares of large doubles do not fit a double.
  long double m_squared_expected = 0;
  long double m_squared_error = 0;
  double m_atol = 0;
  double m_rtol = 0;
};

Result<void> check_within(std::string_view which, std::span<const std::byte> bytes, const TensorLayout& layout) {
  const Result<std::uint64_t> extent = extent_bytes(layout);
  if (!extent) {
    return fail(extent.error());
  }
  if (*extent > 0 && (layout.offset > bytes.size() || *extent > bytes.size() - layout.offset)) {
    return fail(
        Outcome::internal_error,
        fmt::format("The {} tensor ({} of shape {}, {} bytes from offset {}) reaches outside of its buffer of "
                    "{} bytes",
                    which, to_string(layout.dtype), bracketed(layout.shape), *extent, layout.offset, bytes.size()));
  }
  return {};
}

std::string number_text(double value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }
std::string number_text(float value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }
std::string number_text(std::int64_t value) { return fmt::format("{}", value); }
std::string number_text(std::uint64_t value) { return fmt::format("{}", value); }
std::string number_text(const std::complex<double>& value) {
  const std::string imaginary = number_text(value.imag());
  const bool signed_already = imaginary.front() == '-';
  return fmt::format("({}{}{}j)", number_text(value.real()), signed_already ? "" : "+", imaginary);
}

}  // namespace

Result<CompareResult> compare(std::span<const std::byte> expected, const TensorLayout& expected_layout,
                              std::span<const std::byte> got, const TensorLayout& got_layout,
                              const CompareOptions& options) {
  if (expected_layout.dtype != got_layout.dtype || expected_layout.shape != got_layout.shape) {
    return fail(Outcome::internal_error,
                fmt::format("Only tensors of one dtype and shape can be compared: expected {} {}, got {} {}",
                            to_string(expected_layout.dtype), bracketed(expected_layout.shape),
                            to_string(got_layout.dtype), bracketed(got_layout.shape)));
  }
  if (Result<void> good = check_within("expected", expected, expected_layout); !good) {
    return fail(std::move(good).error());
  }
  if (Result<void> good = check_within("returned", got, got_layout); !good) {
    return fail(std::move(good).error());
  }
  return elements::with_element(expected_layout.dtype, [&](auto element) {
    using Reader = BlockReader<decltype(element)>;
    return Comparison<typename Reader::Value>(&Reader::open, expected, expected_layout, got, got_layout, options).run();
  });
}

Result<std::string> element_text(std::span<const std::byte> bytes, const TensorLayout& layout, std::int64_t flat) {
  if (Result<void> good = check_within("given", bytes, layout); !good) {
    return fail(std::move(good).error());
  }
  if (flat < 0 || flat >= numel(layout)) {
    return fail(Outcome::internal_error,
                fmt::format("Element {} is outside of a tensor of {} elements", flat, numel(layout)));
  }
  const std::vector<std::int64_t> index = unravel(flat, layout.shape);
  std::int64_t position = 0;
  for (std::size_t i = 0; i < index.size(); ++i) {
    position += index[i] * layout.stride[i];
  }
  return elements::with_element(layout.dtype, [&](auto element) -> std::string {
    using Element = decltype(element);
    const auto value =
        Element::load(bytes.data() + layout.offset + static_cast<std::uint64_t>(position) * Element::size);
    if (layout.dtype == DType::boolean) {
      return value != decltype(value){} ? "true" : "false";
    }
    return number_text(value);
  });
}

}  // namespace cuda_agent::device
