// cuda-agent policy: what is allowed and refused, why, and whether a workspace's model_new.py keeps to it.
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/installation.hpp"
#include "cli/outcome.hpp"
#include "cli/task_reader.hpp"
#include "policy/policy_file.hpp"
#include "policy/python_rules.hpp"
#include "util/text.hpp"

namespace cuda_agent::cli {

namespace fs = std::filesystem;

namespace {

using nlohmann::json;

std::string dumped(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n"; }

std::string indented(const std::string& text, std::string_view margin) {
  std::string result;
  for (auto const& line : util::split_lines(text)) result += fmt::format("{}{}\n", margin, line);
  return result;
}

/// Names, separated by commas, in lines of a readable length.
std::string wrapped(const json& names, std::string_view margin) {
  constexpr std::size_t width = 110;
  std::string result;
  std::string line;
  for (auto const& item : names) {
    auto const name = item.get<std::string>();
    if (!line.empty() && line.size() + name.size() + 2 > width) result += fmt::format("{}{}\n", margin, line + ",");
    if (!line.empty() && line.size() + name.size() + 2 > width) line.clear();
    line += (line.empty() ? "" : ", ") + name;
  }
  return line.empty() ? result : result + fmt::format("{}{}\n", margin, line);
}

/// The lists of the file that a reader of the policy looks for, under a title each.
std::string allowed_names(const json& document) {
  std::string text = "allowed in model_new.py\n";
  auto const list = [&](std::string_view title, const json& names) {
    text += fmt::format("  {}\n{}", title, wrapped(names, "    "));
  };
  auto const& names = document.at("names");
  auto const& tensor = document.at("tensor");
  list("imports", document.at("modules"));
  list("functions that make memory", names.at("allocates"));
  list("functions that make views", names.at("views"));
  list("functions that move weights (not inputs and results)", names.at("moves"));
  list("other names of torch and Python", names.at("plain"));
  list("contexts and decorators", names.at("contexts"));
  list("attributes of tensors", tensor.at("attributes"));
  list("methods of tensors: what they are", tensor.at("plain"));
  list("methods of tensors: views", tensor.at("views"));
  list("methods of tensors: new memory", tensor.at("allocates"));
  list("methods of tensors: stores", tensor.at("writes"));
  return text;
}

std::string shown(const json& document) {
  auto const rules = policy::rules_of(document);
  std::string text = "rules on model_new.py (cuda-agent policy explain RULE says more)\n";
  std::size_t width = 0;
  for (auto const& rule : rules) width = std::max(width, rule.name.size());
  auto const list_rules = [&](bool of_objects) {
    for (auto const& rule : rules) {
      if (rule.of_objects == of_objects) text += fmt::format("  {:<{}}  {}\n", rule.name, width, rule.summary);
    }
  };
  list_rules(false);
  text += "\nrules on the extension that kernels/ becomes (docs/policy-objects.md)\n";
  list_rules(true);
  text += "\n" + allowed_names(document) + "\nrefused wherever they are named\n";
  for (auto const& [rule, names] : document.at("refused").items()) {
    text += fmt::format("  {}\n{}", rule, wrapped(names, "    "));
  }
  return text;
}

std::string explained(const policy::Rule& rule) {
  auto text = fmt::format("{}: {}\n  why      {}\n  instead  {}\n", rule.name, rule.summary, rule.why, rule.instead);
  if (!rule.wrong.empty()) text += "  wrong\n" + indented(rule.wrong, "    ");
  if (!rule.right.empty()) text += "  right\n" + indented(rule.right, "    ");
  return text;
}

json to_json(const policy::Finding& finding) {
  return {{"rule", finding.rule},       {"file", finding.file},     {"line", finding.line},
          {"column", finding.column},   {"source", finding.source}, {"message", finding.message},
          {"reached", finding.reached}, {"hint", finding.hint}};
}

std::string to_text(const policy::Finding& finding) {
  auto text = finding.file;
  if (finding.line > 0) text += fmt::format(":{}", finding.line);
  if (finding.line > 0 && finding.column > 0) text += fmt::format(":{}", finding.column);
  text += fmt::format(": {} [{}]\n", finding.message, finding.rule);
  if (!finding.source.empty()) text += fmt::format("  {}\n", finding.source);
  if (!finding.reached.empty()) text += fmt::format("  reached  {}\n", finding.reached);
  if (!finding.hint.empty()) text += fmt::format("  instead  {}\n", finding.hint);
  return text;
}

Result<std::vector<policy::Finding>> check(const PolicyOptions& options, const Installation& installation) {
  auto const folder = fs::path(options.argument.empty() ? "." : options.argument);
  auto const file = folder / "model_new.py";
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    return fail(Outcome::usage_error,
                fmt::format("there is no model_new.py in {}", util::escape_untrusted(folder.string())),
                {"give the folder of a workspace: cuda-agent policy check FOLDER"});
  }
  auto const python = any_python(options.python);
  if (!python) return fail(python.error());
  policy::PythonCheck request;
  request.interpreter = *python;
  request.rules = installation.judge.policy / "rules";
  request.config = installation.judge.policy / "policy.json";
  request.file = file;
  return policy::check_python(request, util::Deadline::after(std::chrono::duration<double>(options.timeout)));
}

int print_check(const std::vector<policy::Finding>& findings, const PolicyOptions& options, Console& console) {
  auto const code = exit_code(findings.empty() ? Outcome::pass : Outcome::policy_violation);
  std::string text;
  if (options.output.json) {
    json const clean = findings.empty();
    json list = json::array();
    for (auto const& finding : findings) list.push_back(to_json(finding));
    text = dumped({{"schema", "cuda-agent/policy-check/1"}, {"clean", clean}, {"findings", std::move(list)}});
  } else {
    for (auto const& finding : findings) text += to_text(finding);
    if (findings.empty() && !options.output.quiet) text = "model_new.py keeps the rules\n";
  }
  auto const printed = print_result(console, text);
  return code != 0 ? code : printed;
}

}  // namespace

int run_policy(const PolicyOptions& options, Console& console) {
  auto const failed = [&](const Error& error) { return print_failure(console, "policy", error, options.output.json); };
  auto const installation = find_installation();
  if (!installation) return failed(installation.error());
  if (options.action == "check") {
    auto const findings = check(options, *installation);
    return findings ? print_check(*findings, options, console) : failed(findings.error());
  }
  auto const policy = policy::read_policy_file(installation->judge.policy / "policy.json");
  if (!policy) return failed(policy.error());
  if (options.action == "show") {
    if (!options.argument.empty()) {
      return failed({Outcome::usage_error, "'policy show' takes no argument", {"cuda-agent policy explain RULE"}});
    }
    return print_result(console, options.output.json ? dumped(*policy) : shown(*policy));
  }
  if (options.argument.empty()) {
    return failed({Outcome::usage_error,
                   "'policy explain' needs the name of a rule",
                   {"'cuda-agent policy show' lists the rules"}});
  }
  auto const rule = policy::find_rule(policy::rules_of(*policy), options.argument);
  if (!rule) return failed(rule.error());
  if (!options.output.json) return print_result(console, explained(*rule));
  return print_result(console, dumped({{"schema", "cuda-agent/policy-rule/1"},
                                       {"name", rule->name},
                                       {"summary", rule->summary},
                                       {"why", rule->why},
                                       {"instead", rule->instead},
                                       {"wrong", rule->wrong},
                                       {"right", rule->right}}));
}

void setup_policy(CLI::App& app, Action& action) {
  auto options = std::make_shared<PolicyOptions>();
  auto* const command = add_command(app, "policy", "Show the rules, explain one, or check a workspace's model_new.py");
  command->add_option("action", options->action, "What to do")
      ->required()
      ->check(one_of({"show", "explain", "check"}))
      ->option_text("show|explain|check");
  command
      ->add_option("argument", options->argument,
                   "explain: the rule; check: the workspace folder [default: the current folder]")
      ->option_text("RULE or FOLDER");
  add_python_flag(*command, options->python);
  add_timeout_flag(*command, options->timeout);
  add_output_flags(*command, options->output);
  command->callback(
      [options, &action] { action = [options](Console& console) { return run_policy(*options, console); }; });
}

}  // namespace cuda_agent::cli
