#include "cli/outcome.hpp"

#include <cerrno>
#include <cstring>
#include <ostream>

#include "cuda_agent/verdict.hpp"
#include "report/json.hpp"
#include "util/text.hpp"
#include "util/time.hpp"

namespace cuda_agent::cli {

int print_result(Console& console, const std::string& text) {
  if (print(console, text)) return exit_code(Outcome::pass);
  console.err << "cuda-agent: cannot write the result to standard output: " << std::strerror(errno) << '\n';
  return exit_code(Outcome::environment_error);
}

int print_failure(Console& console, const std::string& command, const Error& error, bool json) {
  console.err << "cuda-agent: " << util::escape_untrusted(error.message, 4096) << '\n';
  for (auto const& line : util::split_lines(util::escape_untrusted(error.detail))) console.err << "  " << line << '\n';
  for (auto const& hint : error.hints) console.err << "  " << util::escape_untrusted(hint, 4096) << '\n';
  console.err << std::flush;
  if (json) {
    Verdict verdict;
    verdict.command = command;
    verdict.time = util::utc_now();
    set_failure(verdict, error);
    print(console, report::render_json(verdict) + "\n");
  }
  return exit_code(error.outcome);
}

Verbosity verbosity(const OutputOptions& options) {
  if (options.quiet) return Verbosity::quiet;
  return options.verbose ? Verbosity::verbose : Verbosity::normal;
}

}  // namespace cuda_agent::cli
