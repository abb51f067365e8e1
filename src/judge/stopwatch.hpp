// Measures a stage of an ask for as long as it lives.
#pragma once

#include <string>
#include <utility>

#include "cuda_agent/timeline.hpp"
#include "cuda_agent/verdict.hpp"
#include "util/time.hpp"

namespace cuda_agent::judge {

class Stopwatch {
 public:
  explicit Stopwatch(Timeline& timeline, std::string what, std::string lane = "ask")
      : m_timeline(timeline), m_what(std::move(what)), m_lane(std::move(lane)) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() { m_timeline.push_back({m_what, m_lane, m_start, seconds()}); }

  double seconds() const { return util::steady_seconds() - m_start; }

 private:
  Timeline& m_timeline;
  std::string m_what;
  std::string m_lane;
  double m_start = util::steady_seconds();
};

/// Of a stage that `timings` names as well: the time of all its parts together.
class StageWatch {
 public:
  StageWatch(Verdict& verdict, const char* stage)
      : m_seconds(verdict.timings[stage]), m_watch(verdict.timeline, stage) {}
  StageWatch(const StageWatch&) = delete;
  StageWatch& operator=(const StageWatch&) = delete;
  ~StageWatch() { m_seconds += m_watch.seconds(); }

 private:
  double& m_seconds;
  Stopwatch m_watch;
};

}  // namespace cuda_agent::judge
