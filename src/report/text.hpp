// The verdict for a person: one screen.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cuda_agent/verdict.hpp"

namespace cuda_agent::report {

/// The text of one line (1-based) of a source file of the candidate, if there is one. Raw: it is escaped when shown.
using SourceLine = std::function<std::optional<std::string>(const std::string& file, int line)>;

struct TextStyle {
  bool colour = false;   ///< ANSI colours
  bool verbose = false;  ///< everything that the verdict knows instead of one screen
  bool timings = false;  ///< where the time went (report/gantt.hpp)
  SourceLine source_line;
};

/// The report, ending with an end of line. Text that the candidate or a compiler wrote is escaped.
std::string render_text(const Verdict& verdict, const TextStyle& style);

}  // namespace cuda_agent::report
