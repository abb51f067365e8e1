// Numbers for people: three significant digits and the unit that keeps them short.
#pragma once

#include <cstdint>
#include <string>

namespace cuda_agent::report {

/// Microseconds as "950 ns", "12.3 µs", "4.56 ms", "1.23 s".
std::string duration_text(double microseconds);

/// Two times in one unit, "12.1 – 12.5 µs".
std::string duration_range_text(double low, double high);

/// Seconds as "0.42 s", "12.3 s", "3 min 5 s".
std::string seconds_text(double seconds);

/// "2.31x"; four digits near 1, where they matter.
std::string ratio_text(double ratio);

/// "1.2e-07", "0.5".
std::string error_text(double value);

/// "1 object", "2 objects".
std::string count_text(std::int64_t count, const std::string& singular, const std::string& plural);

}  // namespace cuda_agent::report
