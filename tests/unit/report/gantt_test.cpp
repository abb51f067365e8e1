#include "report/gantt.hpp"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace cuda_agent::report {
namespace {

std::vector<std::string> path_of(const Timeline& timeline, double end) {
  std::vector<std::string> names;
  for (auto const i : critical_path(timeline, 100, end)) names.push_back(timeline[i].what);
  return names;
}

TEST(CriticalPath, GoesThroughWhatAStageWaitedFor) {
  Timeline const timeline = {{"prepare", "ask", 100, 0.1},  {"build", "ask", 100.1, 1.0},
                             {"a.cu", "build", 100.1, 0.8}, {"b.cu", "build", 100.1, 0.3},
                             {"link", "build", 100.9, 0.2}, {"verify", "ask", 101.1, 0.5}};
  EXPECT_EQ(path_of(timeline, 101.6), (std::vector<std::string>{"prepare", "a.cu", "link", "verify"}));
}

TEST(CriticalPath, AWorkerThatCameUpLastHidesTheStagesBesideIt) {
  Timeline const timeline = {{"prepare", "ask", 100, 0.1},
                             {"build", "ask", 100.1, 0.5},
                             {"workers", "ask", 100.6, 2.4},
                             {"candidate worker", "workers", 100.1, 2.9},
                             {"verify", "ask", 103, 0.5}};
  EXPECT_EQ(path_of(timeline, 103.5), (std::vector<std::string>{"prepare", "candidate worker", "verify"}));
}

TEST(CriticalPath, TakesTheInnerOfTwoStagesAndStepsOverWhatIsNotKnown) {
  Timeline const timeline = {{"first", "ask", 100, 0.2}, {"profile", "ask", 101, 1.0}, {"probe", "ask", 101.6, 0.4}};
  EXPECT_EQ(path_of(timeline, 102), (std::vector<std::string>{"first", "profile", "probe"}));
  EXPECT_TRUE(path_of({}, 102).empty());
}

Verdict an_ask() {
  Verdict verdict;
  verdict.command = "run";
  verdict.workspace = "w\x1b[31m";
  verdict.began = 100;
  verdict.timings["total"] = 2;
  verdict.timeline = {{"build", "ask", 100, 1.2},
                      {"a\x1b[31m.cu", "build", 100.1, 1.1},
                      {"rules", "rules", 100, 0.5},
                      {"tiny", "ask", 101.2, 0.001},
                      {"verify", "ask", 101.2, 0.8}};
  return verdict;
}

TEST(Gantt, ShowsEachSpanAtItsPlaceAndTheCriticalPathSolid) {
  auto const text = render_gantt(an_ask());
  auto const line = [&](const std::string& what) {
    auto const at = text.find("  " + what);
    EXPECT_NE(at, std::string::npos) << what << " is not in\n" << text;
    return text.substr(text.rfind('\n', at) + 1, at - text.rfind('\n', at) - 1);
  };
  EXPECT_NE(line("verify").find("█"), std::string::npos);
  EXPECT_EQ(line("rules").find("█"), std::string::npos);
  EXPECT_NE(line("rules").find("░"), std::string::npos);
  EXPECT_LT(line("rules").find("░"), line("verify").find("█"));
  EXPECT_EQ(text.find("tiny"), std::string::npos);
  EXPECT_NE(text.find("1 more"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << "a file's name is somebody else's text";
  EXPECT_EQ(render_gantt(Verdict()), "");
}

TEST(ChromeTrace, IsInMicrosecondsOfTheSharedClockAndNothingOverlapsInARow) {
  auto verdict = an_ask();
  verdict.timeline.push_back({"b.cu", "build", 100.5, 0.3});
  auto const trace = nlohmann::json::parse(render_chrome_trace(verdict));
  std::map<int, double> busy;
  int complete = 0;
  for (auto const& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++complete;
    if (event.at("name") == "verify") {
      EXPECT_DOUBLE_EQ(event.at("ts").get<double>(), 101.2e6);
      EXPECT_DOUBLE_EQ(event.at("dur").get<double>(), 0.8e6);
    }
    if (event.at("cat") != "build") continue;
    auto& end = busy[event.at("tid").get<int>()];
    EXPECT_GE(event.at("ts").get<double>(), end);
    end = event.at("ts").get<double>() + event.at("dur").get<double>();
  }
  EXPECT_EQ(complete, 6);
  EXPECT_EQ(busy.size(), 2U);
}

}  // namespace
}  // namespace cuda_agent::report
