#include "judge/policy_stage.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "exec/sandbox.hpp"
#include "judge/interpreter_places.hpp"
#include "policy/objects.hpp"
#include "policy/python_rules.hpp"

namespace cuda_agent::judge {
namespace fs = std::filesystem;

Result<std::vector<PolicyFinding>> check_model_new(const fs::path& snapshot, const build::Interpreter& interpreter,
                                                   const fs::path& policy, util::Deadline deadline) {
  policy::PythonCheck request;
  request.file = snapshot / request.name;
  std::error_code problem;
  if (!fs::is_regular_file(request.file, problem)) return std::vector<PolicyFinding>();
  request.interpreter = interpreter.executable;
  request.rules = policy / "rules";
  request.config = policy / "policy.json";
  if (exec::probe_sandbox().bubblewrap) {
    InterpreterPlaces const places(interpreter);
    request.interpreter = places.inside(interpreter.executable);
    places.bind(request.sandbox.emplace());
  }
  auto const found = policy::check_python(request, deadline);
  if (!found) return fail(found.error());
  std::vector<PolicyFinding> findings;
  for (policy::Finding const& one : *found) {
    findings.push_back({.rule = one.rule,
                        .file = one.file,
                        .line = one.line,
                        .column = one.column,
                        .message = one.message,
                        .reached = one.reached,
                        .source = one.source,
                        .hint = one.hint});
  }
  // That nothing of its own is called follows from what is called instead, and says less.
  std::stable_partition(findings.begin(), findings.end(),
                        [](const PolicyFinding& one) { return one.rule != "no-own-kernel"; });
  return findings;
}

Result<std::vector<PolicyFinding>> check_built(const build::ExtensionResult& built) {
  auto const found = policy::check_objects({built.extension, built.objects, built.library_folders});
  if (!found) return fail(found.error());
  std::vector<PolicyFinding> findings;
  for (policy::ObjectFinding const& one : *found) {
    findings.push_back({.rule = one.rule,
                        .file = one.used_by.empty() ? "" : one.used_by.front(),
                        .symbol = one.symbol,
                        .message = one.message,
                        .hint = one.hint});
  }
  return findings;
}

Error policy_violation(const std::vector<PolicyFinding>& findings) {
  PolicyFinding const& first = findings.front();
  std::string place = first.file;
  if (first.line > 0) place += fmt::format(":{}", first.line);
  // What was built is named in the message itself.
  std::string message =
      first.symbol.empty() && !place.empty() ? fmt::format("{}: {}", place, first.message) : first.message;
  message += fmt::format(" [{}]", first.rule);
  if (findings.size() > 1) message += fmt::format(" (and {} more)", findings.size() - 1);
  std::vector<std::string> hints;
  if (!first.hint.empty()) hints.push_back(first.hint);
  hints.push_back(fmt::format("cuda-agent policy explain {} says why, and what to do instead", first.rule));
  return {Outcome::policy_violation, std::move(message), std::move(hints)};
}

}  // namespace cuda_agent::judge
