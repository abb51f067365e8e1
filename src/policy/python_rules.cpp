#include "policy/python_rules.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "exec/child.hpp"
#include "util/environment.hpp"
#include "util/json.hpp"
#include "util/text.hpp"

namespace cuda_agent::policy {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// The checker's own lines begin with this: standard output and standard error come out of one pipe.
constexpr std::string_view mark = "cuda-agent-rules: ";
// Said before the judged file is opened: what goes wrong earlier is not the candidate's fault.
constexpr std::string_view ready = "ready";

constexpr std::size_t longest_text = 4096;

const std::vector<std::string> python_hints = {"Python 3.11 or newer is needed: give one with --python FILE"};

/// What an interpreter may need to start at all (a pyenv shim, a library in a place of its own), and nothing else.
std::map<std::string, std::string> environment() {
  std::map<std::string, std::string> kept{{"LC_ALL", "C.UTF-8"}};
  for (const char* name : {"PATH", "HOME", "LD_LIBRARY_PATH", "PYENV_VERSION", "PYENV_ROOT"}) {
    if (auto value = util::get_env(name)) kept[name] = *value;
  }
  return kept;
}

exec::Command command_for(const PythonCheck& request) {
  auto rules = fs::absolute(request.rules);
  auto config = fs::absolute(request.config);
  auto file = fs::absolute(request.file);
  exec::Command command;
  if (request.sandbox) {
    auto const show = [&](fs::path& path, const char* inside) {
      command.sandbox->binds.push_back({std::exchange(path, inside), inside, false, false});
    };
    command.sandbox = request.sandbox;
    show(rules, "/policy/rules");
    show(config, "/policy/policy.json");
    show(file, "/policy/judged.py");
  }
  // -I and -S: neither the environment nor installed packages decide what the checker imports. -B: it writes nothing.
  command.argv = {request.interpreter.string(),
                  "-I",
                  "-S",
                  "-B",
                  (rules / "cuda_agent_rules.py").string(),
                  config.string(),
                  file.string()};
  command.env = environment();
  command.limits.address_space = request.address_space;
  command.limits.cpu_seconds = request.cpu_seconds;
  command.capture_head = std::size_t{2} << 20;
  return command;
}

/// What the checker said in lines of its own.
struct Said {
  bool ready = false;
  std::string report;
};

Said read_lines(const std::string& output) {
  Said said;
  for (auto const& line : util::split_lines(output)) {
    if (!line.starts_with(mark)) continue;
    auto text = line.substr(mark.size());
    if (text == ready) {
      said.ready = true;
    } else {
      said.report = std::move(text);
    }
  }
  return said;
}

std::string text_of(const json& from, const char* key) {
  return util::escape_untrusted(from.at(key).get<std::string>(), longest_text);
}

Finding finding_from_json(const json& from, const std::string& name) {
  Finding finding;
  finding.rule = text_of(from, "rule");
  finding.file = name;
  finding.message = text_of(from, "message");
  finding.reached = text_of(from, "reached");
  finding.hint = text_of(from, "hint");
  finding.source = text_of(from, "source");
  finding.line = from.at("line").get<int>();
  finding.column = from.at("column").get<int>();
  return finding;
}

Result<std::vector<Finding>> findings_of(const Said& said, const PythonCheck& request) {
  auto const not_understood = [&](std::string_view why) {
    return fail(Outcome::internal_error,
                fmt::format("the checker of {} gave an answer that is not understood: {}", request.name, why), {},
                util::escape_untrusted(said.report, longest_text));
  };
  auto const report = util::parse_json(said.report);
  if (!report) return not_understood(report.error().message);
  std::vector<Finding> findings;
  try {
    for (auto const& item : report->at("findings")) findings.push_back(finding_from_json(item, request.name));
  } catch (const json::exception& error) {
    return not_understood(error.what());
  }
  for (auto const& finding : findings) {
    if (finding.rule.empty() || finding.line < 0 || finding.column < 0) {
      return not_understood("a finding without a rule, or before the first line");
    }
  }
  return findings;
}

std::vector<Finding> not_checked(const PythonCheck& request, std::string_view why) {
  Finding finding;
  finding.rule = cannot_be_checked;
  finding.file = request.name;
  finding.message = fmt::format("{} cannot be checked: {}", request.name, why);
  finding.hint = "write it plainly: small functions, no deep nesting, no long generated tables";
  return {finding};
}

/// The checker said that it was not to blame on the candidate, or said nothing at all.
tl::unexpected<Error> not_started(const PythonCheck& request, const exec::Completed& completed) {
  return fail(
      Outcome::environment_error,
      fmt::format("{} cannot run the policy's rules in {}: {}", util::escape_untrusted(request.interpreter.string()),
                  util::escape_untrusted(request.rules.string()), completed.status.describe()),
      python_hints, util::escape_untrusted(completed.output, longest_text));
}

bool is_executable(const fs::path& path) { return util::find_executable(path.string()).has_value(); }

}  // namespace

Result<std::vector<Finding>> check_python(const PythonCheck& request, util::Deadline deadline) {
  if (!request.sandbox && (!request.interpreter.has_parent_path() || !is_executable(request.interpreter))) {
    return fail(Outcome::environment_error,
                fmt::format("the Python interpreter {} is not an executable file",
                            util::escape_untrusted(request.interpreter.string())),
                python_hints);
  }
  auto const own = util::Deadline::after(std::chrono::duration<double>(request.seconds));
  auto const completed = exec::run(command_for(request), deadline.earlier(own));
  if (!completed) {
    bool const own_limit = completed.error().outcome == Outcome::timeout && !deadline.expired();
    if (!own_limit) return fail(completed.error());
    return not_checked(request, fmt::format("its rules took longer than {} s", request.seconds));
  }
  auto const said = read_lines(completed->output);
  if (!said.ready) return not_started(request, *completed);
  if (!completed->status.ok()) {
    return not_checked(request, fmt::format("the checker ended with {}", completed->status.describe()));
  }
  return findings_of(said, request);
}

}  // namespace cuda_agent::policy
