#include "util/time.hpp"

#include <chrono>

#include <spdlog/fmt/fmt.h>

namespace cuda_agent::util {

std::string utc_now() {
  using namespace std::chrono;
  auto const now = floor<seconds>(system_clock::now());
  auto const day = floor<days>(now);
  year_month_day const date(day);
  hh_mm_ss const clock(now - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace cuda_agent::util
