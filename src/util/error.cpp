#include "cuda_agent/error.hpp"

namespace cuda_agent {

std::string_view to_string(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::pass:
      return "pass";
    case Outcome::compile_error:
      return "compile_error";
    case Outcome::policy_violation:
      return "policy_violation";
    case Outcome::wrong:
      return "wrong";
    case Outcome::crash:
      return "crash";
    case Outcome::timeout:
      return "timeout";
    case Outcome::slow:
      return "slow";
    case Outcome::task_error:
      return "task_error";
    case Outcome::environment_error:
      return "environment_error";
    case Outcome::internal_error:
      return "internal_error";
    case Outcome::usage_error:
      return "usage_error";
    case Outcome::interrupted:
      return "interrupted";
  }
  return "internal_error";
}

std::string_view to_string(Fault fault) noexcept {
  switch (fault) {
    case Fault::none:
      return "none";
    case Fault::candidate:
      return "candidate";
    case Fault::task:
      return "task";
    case Fault::environment:
      return "environment";
    case Fault::internal:
      return "internal";
  }
  return "internal";
}

int exit_code(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::pass:
      return 0;
    case Outcome::internal_error:
      return 1;
    case Outcome::usage_error:
      return 2;
    case Outcome::environment_error:
      return 3;
    case Outcome::policy_violation:
      return 4;
    case Outcome::compile_error:
      return 5;
    case Outcome::wrong:
    case Outcome::crash:
      return 6;
    case Outcome::slow:
      return 7;
    case Outcome::timeout:
      return 8;
    case Outcome::task_error:
      return 9;
    case Outcome::interrupted:
      return 130;
  }
  return 1;
}

Fault default_fault(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::pass:
      return Fault::none;
    case Outcome::compile_error:
    case Outcome::policy_violation:
    case Outcome::wrong:
    case Outcome::crash:
    case Outcome::timeout:
    case Outcome::slow:
      return Fault::candidate;
    case Outcome::task_error:
      return Fault::task;
    case Outcome::environment_error:
    case Outcome::usage_error:
    case Outcome::interrupted:
      return Fault::environment;
    case Outcome::internal_error:
      return Fault::internal;
  }
  return Fault::internal;
}

}  // namespace cuda_agent
