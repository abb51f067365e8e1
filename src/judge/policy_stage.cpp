#include "judge/policy_stage.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "exec/sandbox.hpp"
#include "judge/interpreter_places.hpp"
#include "policy/objects.hpp"
#include "policy/policy_file.hpp"
#include "policy/python_rules.hpp"
#include "util/hash.hpp"
#include "util/text.hpp"

namespace cuda_agent::judge {
namespace fs = std::filesystem;

std::optional<std::string> rules_key(const fs::path& file, const build::Interpreter& interpreter,
                                     const fs::path& policy) {
  std::vector<fs::path> files = {file, policy / "policy.json"};
  std::error_code problem;
  fs::directory_iterator rule(policy / "rules", problem);
  for (; !problem && rule != fs::directory_iterator(); rule.increment(problem)) {
    if (rule->path().extension() == ".py") files.push_back(rule->path());
  }
  std::sort(files.begin() + 2, files.end());
  auto key = interpreter.executable.string();
  for (auto const& one : files) {
    auto const hash = util::sha256_of_file(one);
    if (!hash) return std::nullopt;
    key += "\n" + *hash;
  }
  return problem ? std::nullopt : std::optional(std::move(key));
}

namespace {

Result<std::vector<PolicyFinding>> ask_checker(const fs::path& snapshot, const build::Interpreter& interpreter,
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

}  // namespace

const std::vector<PolicyFinding>* RulesMemo::find(const std::string& key) {
  auto const found = std::find_if(m_known.begin(), m_known.end(), [&](auto const& one) { return one.first == key; });
  if (found == m_known.end()) return nullptr;
  m_known.splice(m_known.begin(), m_known, found);
  return &m_known.front().second;
}

void RulesMemo::note(const std::string& key, std::vector<PolicyFinding> findings) {
  constexpr std::size_t most = 64;
  m_known.emplace_front(key, std::move(findings));
  if (m_known.size() > most) m_known.pop_back();
}

Result<std::vector<PolicyFinding>> check_model_new(const fs::path& snapshot, const build::Interpreter& interpreter,
                                                   const fs::path& policy, util::Deadline deadline, RulesMemo* memo) {
  auto const file = snapshot / policy::PythonCheck().name;
  auto const key = memo != nullptr ? rules_key(file, interpreter, policy) : std::nullopt;
  if (auto const* const known = key ? memo->find(*key) : nullptr) return *known;
  auto found = ask_checker(snapshot, interpreter, policy, deadline);
  // A checker that ran out of time may not do so the next time.
  bool const for_good = found && std::none_of(found->begin(), found->end(), [](const PolicyFinding& one) {
                          return one.rule == policy::cannot_be_checked;
                        });
  // The checker has opened it again: what it read must still be what the key is of.
  if (key && for_good && rules_key(file, interpreter, policy) == key) memo->note(*key, *found);
  return found;
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

Result<Witness> read_witness(const nlohmann::json& reply) {
  constexpr std::size_t most_operators = 1000;
  constexpr std::size_t longest_name = 200;
  Witness witness;
  try {
    if (!reply.at("intact").get<bool>()) {
      return fail(Outcome::policy_violation,
                  "torch's recorder of operators was taken away in the candidate's process [torch-recorder]",
                  {"cuda-agent policy explain torch-recorder says why"});
    }
    for (auto const& [name, calls] : reply.at("operators").items()) {
      if (witness.operators.size() == most_operators) break;
      witness.operators[util::escape_untrusted(name, longest_name)] = calls.get<std::int64_t>();
    }
  } catch (const nlohmann::json::exception& error) {
    return fail(
        Outcome::crash,
        fmt::format("the candidate's worker broke the protocol when it was asked what it saw: {}", error.what()));
  }
  return witness;
}

Result<std::vector<PolicyFinding>> check_witness(const Witness& witness, const fs::path& policy) {
  auto const document = policy::read_policy_file(policy / "policy.json");
  if (!document) return fail(document.error());
  auto const rule = policy::find_rule(policy::rules_of(*document), "operator-seen");
  if (!rule) return fail(rule.error());
  std::vector<std::string> names;
  for (auto const& [name, calls] : witness.operators) names.push_back(name);
  std::vector<PolicyFinding> findings;
  for (std::string const& name : policy::refused_operators(*document, names)) {
    findings.push_back({.rule = rule->name,
                        .symbol = name,
                        .message = fmt::format("a call of ModelNew ran torch's operator {}", name),
                        .hint = rule->instead});
  }
  return findings;
}

Result<std::vector<PolicyFinding>> check_trace(const std::vector<TracedKernel>& kernels, const fs::path& policy) {
  auto const computes = [](const TracedKernel& one) {
    return !one.name.starts_with("Memcpy") && !one.name.starts_with("Memset");
  };
  if (std::any_of(kernels.begin(), kernels.end(), computes)) return std::vector<PolicyFinding>();
  auto const document = policy::read_policy_file(policy / "policy.json");
  if (!document) return fail(document.error());
  auto const rule = policy::find_rule(policy::rules_of(*document), "no-own-kernel");
  if (!rule) return fail(rule.error());
  std::string const instead = kernels.empty() ? "nothing at all" : kernels.front().name;
  return std::vector<PolicyFinding>{
      {.rule = rule->name,
       .message = fmt::format(
           "a call of ModelNew launched no kernel, neither one of kernels/ nor a library's; it ran {}", instead),
       .hint = rule->instead}};
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
