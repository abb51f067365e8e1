#include "build/compile_error.hpp"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "build/diagnostics.hpp"
#include "util/interrupt.hpp"
#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

constexpr int sigkill = 9;
constexpr std::size_t longest_detail = 16384;

std::string name_of(const ToolFailure& failure) {
  return failure.tool == "link" ? "linking cuda_extension" : "compiling " + failure.source;
}

Error timed_out(const ToolFailure& failure, const JobOutcome& outcome) {
  Error error(
      Outcome::timeout,
      outcome.seconds + 1 < failure.timeout
          ? fmt::format("{} was stopped after {:.0f} seconds: the time for the whole command is over", name_of(failure),
                        outcome.seconds)
          : fmt::format("{} took longer than {:.0f} seconds and was stopped", name_of(failure), failure.timeout),
      {"Look for templates that instantiate themselves deeply, or for very large unrolled loops.",
       "Split the file: several smaller files are compiled side by side.",
       "A file that needs longer needs more than the default: --compile-timeout SECONDS."},
      util::escape_untrusted(outcome.output, longest_detail));
  error.fault = failure.is_candidate ? Fault::candidate : Fault::environment;
  return error;
}

Error environment(const ToolFailure& failure, const std::string& why, const JobOutcome& outcome) {
  return Error(Outcome::environment_error, fmt::format("{}: {}", name_of(failure), why),
               {"Free memory or disk space, then try again; nothing was kept of this attempt.",
                "Fewer compilers at a time need less memory."},
               util::escape_untrusted(outcome.output, longest_detail));
}

std::string message_of(const ToolFailure& failure, const JobOutcome& outcome,
                       const std::vector<Diagnostic>& diagnostics) {
  auto const* const first = first_error(diagnostics);
  if (first == nullptr)
    return fmt::format("{} failed: the tool ended with {}", name_of(failure), outcome.status.describe());
  auto const more = std::count_if(diagnostics.begin(), diagnostics.end(),
                                  [](const Diagnostic& diagnostic) { return diagnostic.severity == "error"; }) -
                    1;
  std::string message = describe(*first, failure.source);
  if (more > 0) message += fmt::format(" (and {} more error{})", more, more == 1 ? "" : "s");
  return message;
}

}  // namespace

Error explain_failure(const ToolFailure& failure, const JobOutcome& outcome,
                      const std::vector<Diagnostic>& diagnostics) {
  switch (outcome.state) {
    case JobOutcome::State::interrupted:
      return util::interrupted_error();
    case JobOutcome::State::not_started:
      return outcome.error ? *outcome.error : Error(Outcome::environment_error, name_of(failure) + " could not start");
    case JobOutcome::State::timed_out:
      return timed_out(failure, outcome);
    case JobOutcome::State::not_run:
    case JobOutcome::State::finished:
      break;
  }
  if (auto const why = environment_failure(outcome.output); !why.empty()) return environment(failure, why, outcome);
  if (outcome.status.signal == sigkill || outcome.status.code == 128 + sigkill) {  // nvcc reports its child's so
    return environment(failure, "the system killed the compiler, probably for lack of memory", outcome);
  }
  std::string const message = message_of(failure, outcome, diagnostics);
  std::string const detail = util::escape_untrusted(outcome.output, longest_detail);
  if (!failure.is_candidate) {
    return Error(
        Outcome::environment_error,
        fmt::format("the judge's own {} does not compile with this torch and compiler: {}", failure.source, message),
        {"cuda-agent doctor shows which Python, torch and compiler are used."}, detail);
  }
  return Error(Outcome::compile_error, message, {}, detail);
}

}  // namespace cuda_agent::build
