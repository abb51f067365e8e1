#include "report/gantt.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include "util/text.hpp"

namespace cuda_agent::report {
namespace {

/// Two spans that follow each other closer than this belong together.
constexpr double together = 0.02;
constexpr int width = 40;

double end_of(const TimelineSpan& span) { return span.start + span.seconds; }

bool is_stage(const TimelineSpan& span) { return span.lane == "ask" || span.lane == "client"; }

/// The span before `moment` on the path; none: nothing is known of that time.
std::optional<std::size_t> span_ending_at(const Timeline& timeline, double moment) {
  std::optional<std::size_t> best;
  auto const better = [&](std::size_t i) {
    if (!best) return true;
    auto const& one = timeline[i];
    auto const& other = timeline[*best];
    if (is_stage(one) != is_stage(other)) return !is_stage(one);
    // Of stages the innermost; of what went on beside them what took longest.
    return is_stage(one) ? one.start > other.start : one.seconds > other.seconds;
  };
  for (std::size_t i = 0; i < timeline.size(); ++i) {
    auto const& one = timeline[i];
    bool const ends_now = std::abs(end_of(one) - moment) <= together;
    bool const waits = is_stage(one) && one.start < moment && end_of(one) >= moment;
    bool const progresses = one.start < moment - 1e-6;
    if (progresses && (ends_now || waits) && better(i)) best = i;
  }
  return best;
}

std::string bar(double start, double end, double whole, bool critical) {
  auto const column = [&](double at) {
    return std::clamp(static_cast<int>(std::lround(at / whole * width)), 0, width);
  };
  int const from = std::min(column(start), width - 1);
  int const to = std::max(column(end), from + 1);
  std::string text(static_cast<std::size_t>(from), ' ');
  for (int i = from; i < to; ++i) text += critical ? "█" : "░";
  text.append(static_cast<std::size_t>(width - to), ' ');
  return text;
}

}  // namespace

std::vector<std::size_t> critical_path(const Timeline& timeline, double began, double end) {
  std::vector<std::size_t> path;
  double moment = end;
  while (moment > began + 1e-6) {
    auto const found = span_ending_at(timeline, moment);
    if (found) {
      path.push_back(*found);
      moment = timeline[*found].start;
      continue;
    }
    double earlier = began;
    for (auto const& one : timeline) {
      if (end_of(one) < moment - 1e-6) earlier = std::max(earlier, end_of(one));
    }
    moment = earlier;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::string render_gantt(const Verdict& verdict) {
  auto const total = verdict.timings.find("total");
  double const whole = total != verdict.timings.end() ? total->second : 0;
  if (!(whole > 0)) return "";
  auto const path = critical_path(verdict.timeline, verdict.began, verdict.began + whole);
  std::vector<std::size_t> order(verdict.timeline.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return verdict.timeline[a].start < verdict.timeline[b].start; });
  std::string text =
      fmt::format("  time     {:<{}.2f} {:>6.2f} s; solid: what the answer waited for\n", 0.0, width - 5, whole);
  int shorter = 0;
  for (std::size_t const i : order) {
    auto const& one = verdict.timeline[i];
    if (one.seconds < whole / 100) {
      ++shorter;
      continue;
    }
    double const start = one.start - verdict.began;
    bool const critical = std::find(path.begin(), path.end(), i) != path.end();
    text += fmt::format("           {} {:>7.3f}  {}\n", bar(start, start + one.seconds, whole, critical), one.seconds,
                        util::escape_untrusted(one.lane == "client" ? one.what + " (client)" : one.what, 200));
  }
  if (shorter > 0) text += fmt::format("           {:<{}}          {} more, each below 1 %\n", "", width, shorter);
  return text;
}

std::string render_chrome_trace(const Verdict& verdict) {
  using nlohmann::json;
  constexpr double micro = 1e6;
  json events = json::array();
  // One row of the viewer shows what lies within each other; what overlaps otherwise needs another one.
  std::map<std::string, std::vector<double>> rows;  // lane → end of what was put last, by row
  std::map<std::pair<std::string, std::size_t>, int> numbers;
  auto spans = verdict.timeline;
  std::stable_sort(spans.begin(), spans.end(), [](const TimelineSpan& a, const TimelineSpan& b) {
    return a.start != b.start ? a.start < b.start : a.seconds > b.seconds;
  });
  for (auto const& one : spans) {
    auto& ends = rows[one.lane];
    std::size_t row = 0;
    bool const nests = one.lane != "build" && one.lane != "workers";
    while (!nests && row < ends.size() && ends[row] > one.start) ++row;
    if (row == ends.size()) ends.push_back(0);
    ends[row] = end_of(one);
    int const number = numbers.try_emplace({one.lane, row}, static_cast<int>(numbers.size()) + 1).first->second;
    events.push_back({{"name", util::escape_untrusted(one.what, 200)},
                      {"cat", one.lane},
                      {"ph", "X"},
                      {"ts", one.start * micro},
                      {"dur", one.seconds * micro},
                      {"pid", ::getpid()},
                      {"tid", number}});
  }
  for (auto const& [place, number] : numbers) {
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", ::getpid()},
                      {"tid", number},
                      {"args", {{"name", util::escape_untrusted(place.first, 64)}}}});
  }
  events.push_back(
      {{"name", "process_name"},
       {"ph", "M"},
       {"pid", ::getpid()},
       {"args", {{"name", util::escape_untrusted("cuda-agent " + verdict.command + " " + verdict.workspace, 400)}}}});
  return json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump(-1, ' ', false,
                                                                                  json::error_handler_t::replace) +
         "\n";
}

}  // namespace cuda_agent::report
