// The words in which every part of the program reports failure: outcome, fault, exit code (docs/verdict.md).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace cuda_agent {

/// What an ask came to. The names are those of the verdict's key `outcome`.
enum class Outcome {
  pass,
  compile_error,
  policy_violation,
  wrong,
  crash,
  timeout,
  slow,
  task_error,
  environment_error,
  internal_error,
  usage_error,  ///< only on the command line; never in a verdict of a judged candidate
  interrupted,  ///< SIGINT or SIGTERM
};

/// Whose failure it is. `none` for a pass.
enum class Fault { none, candidate, task, environment, internal };

std::string_view to_string(Outcome outcome) noexcept;
std::string_view to_string(Fault fault) noexcept;

/// The process exit code of an outcome (design: 0 pass, 1 internal, 2 usage, 3 environment, 4 policy, 5 compile,
/// 6 wrong or crash, 7 slow, 8 timeout, 9 task, 130 interrupted).
int exit_code(Outcome outcome) noexcept;

/// Whose fault an outcome is unless an error says otherwise.
Fault default_fault(Outcome outcome) noexcept;

/// A failure that a person can act on: what happened, where, what was expected, what to try.
struct Error {
  Outcome outcome = Outcome::internal_error;
  std::string message;             ///< one sentence: what happened, where, what was expected
  std::vector<std::string> hints;  ///< what to do next, most likely first
  std::string detail;              ///< longer text of somebody else (compiler, traceback), already escaped
  Fault fault = default_fault(outcome);

  Error() = default;
  Error(Outcome outcome_, std::string message_, std::vector<std::string> hints_ = {}, std::string detail_ = {})
      : outcome(outcome_),
        message(std::move(message_)),
        hints(std::move(hints_)),
        detail(std::move(detail_)),
        fault(default_fault(outcome_)) {}
};

template <typename T>
using Result = tl::expected<T, Error>;

/// Shorthand for `return fail(Outcome::…, "…")`.
inline tl::unexpected<Error> fail(Outcome outcome, std::string message, std::vector<std::string> hints = {},
                                  std::string detail = {}) {
  return tl::unexpected<Error>(Error(outcome, std::move(message), std::move(hints), std::move(detail)));
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace cuda_agent
