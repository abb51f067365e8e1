// Where an ask's time went, as bars for a person and as a trace for a viewer.
#pragma once

#include <string>
#include <vector>

#include "cuda_agent/timeline.hpp"
#include "cuda_agent/verdict.hpp"

namespace cuda_agent::report {

/// Which spans the end of the ask, at `end`, waited for, going back from it: at each moment the one that ended then,
/// work that went on beside the ask before the stage of the ask that waited for it. Indices into `timeline`, by time.
std::vector<std::size_t> critical_path(const Timeline& timeline, double began, double end);

/// Lines of "  bars  what  seconds", by start, those of the critical path solid. Spans below one per cent are left out,
/// and counted. Ends with an end of line.
std::string render_gantt(const Verdict& verdict);

/// Trace Event Format (JSON object format; the "Trace Event Format" document of the Chromium project), times in µs of
/// the steady clock: traces of several asks on one machine lie side by side.
std::string render_chrome_trace(const Verdict& verdict);

}  // namespace cuda_agent::report
