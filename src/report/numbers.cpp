#include "report/numbers.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <spdlog/fmt/fmt.h>

namespace cuda_agent::report {

namespace {

struct Unit {
  double microseconds;
  const char* name;
};

Unit unit_of(double microseconds) {
  static constexpr std::array units{Unit{1e6, "s"}, Unit{1e3, "ms"}, Unit{1, "µs"}};
  for (auto const& unit : units) {
    if (std::abs(microseconds) >= unit.microseconds) return unit;
  }
  return {1e-3, "ns"};
}

/// Three significant digits, never as a power of ten.
std::string three_digits(double value) {
  auto const size = std::abs(value);
  if (size >= 100 || value == 0) return fmt::format("{:.0f}", value);
  if (size >= 10) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

}  // namespace

std::string duration_text(double microseconds) {
  auto const unit = unit_of(microseconds);
  return fmt::format("{} {}", three_digits(microseconds / unit.microseconds), unit.name);
}

std::string duration_range_text(double low, double high) {
  auto const unit = unit_of(high);
  return fmt::format("{} – {} {}", three_digits(low / unit.microseconds), three_digits(high / unit.microseconds),
                     unit.name);
}

std::string seconds_text(double seconds) {
  if (seconds < 60) return fmt::format("{:.{}f} s", seconds, seconds < 10 ? 2 : 1);
  auto const whole = std::llround(seconds);
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

std::string ratio_text(double ratio) {
  if (ratio >= 0.9 && ratio <= 1.1) return fmt::format("{:.3f}x", ratio);
  return fmt::format("{}x", three_digits(ratio));
}

std::string error_text(double value) {
  if (std::isnan(value)) return "NaN";
  return fmt::format("{:.2g}", value);
}

std::string count_text(std::int64_t count, const std::string& singular, const std::string& plural) {
  return fmt::format("{} {}", count, count == 1 ? singular : plural);
}

}  // namespace cuda_agent::report
