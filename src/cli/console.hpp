// Where commands print: results on standard output, everything else on standard error.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "util/progress.hpp"

namespace cuda_agent::judge {
class Supply;
}

namespace cuda_agent::cli {

/// Set where a command line is answered by a session.
struct Resident {
  judge::Supply& supply;
  util::Progress& progress;  ///< the client's
  double began = 0;          ///< when the client did, seconds of the steady clock
  double since = 0;          ///< when it began to wait for its turn, by the same clock
  double waited = 0;         ///< seconds from then on
  double held = 0;           ///< seconds of those, for a workspace that somebody else has
  nlohmann::json compiled;   ///< by the client just now: {"build": seconds, "objects": {source: seconds}}
  bool expecting = false;    ///< the ask only is on its way: workers are started for it, and nothing else
};

struct Console {
  std::ostream& out;
  std::ostream& err;
  bool colour = false;                   ///< standard output takes colours
  bool updating = false;                 ///< standard error is a terminal that can rewrite its line
  std::vector<std::string> arguments{};  ///< the command line; empty where the caller is not cuda-agent itself
  Resident* resident = nullptr;
};

/// The real streams. Colours and updating lines only on a terminal, not with TERM=dumb; no colours with NO_COLOR.
Console real_console();

/// Opens /dev/null for each of the descriptors 0, 1 and 2 that is closed, so that no other file gets its number.
void open_standard_descriptors();

/// Writes a result and flushes. False when it could not be written (errno says why).
bool print(Console& console, std::string_view text);

enum class Verbosity { quiet, normal, verbose };

/// How long work says what it does: a line that updates on a terminal, plain lines otherwise, nothing when quiet.
std::unique_ptr<util::Progress> make_progress(Console& console, Verbosity verbosity);

}  // namespace cuda_agent::cli
