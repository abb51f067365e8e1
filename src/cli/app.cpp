#include "cli/app.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <spdlog/fmt/fmt.h>

#include "cli/outcome.hpp"
#include "util/text.hpp"

namespace cuda_agent::cli {

namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (auto const* const command : app.get_subcommands({})) {
    // A hidden command has no group.
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (auto const* const option : command.get_options()) {
    for (auto const& name : option->get_lnames()) names.push_back("--" + name);
    for (auto const& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

Error usage(const std::string& program, std::string message) {
  return {Outcome::usage_error, std::move(message), {fmt::format("'{} --help' lists what can be given", program)}};
}

Error unknown(const std::string& program, std::string_view kind, const std::string& word,
              const std::vector<std::string>& known) {
  auto message = fmt::format("{} has no {} '{}'", program, kind, util::escape_untrusted(word, 256));
  if (auto const meant = util::closest(word, known)) message += fmt::format("; did you mean '{}'?", *meant);
  return usage(program, std::move(message));
}

/// The flag of a word as it was typed, without "=value"; empty when it is no flag (negative numbers are not).
std::string flag_of(const std::string& word) {
  if (word.size() < 2 || word.front() != '-') return {};
  if (word.starts_with("--")) return word.substr(0, word.find('='));
  return std::isalpha(static_cast<unsigned char>(word[1])) != 0 ? word.substr(0, 2) : std::string();
}

std::optional<Error> unknown_flag(const CLI::App& command, const std::string& program, const std::string& word) {
  auto const flag = flag_of(word);
  auto const known = flag_names(command);
  if (flag.empty() || std::find(known.begin(), known.end(), flag) != known.end()) return std::nullopt;
  // "-json" was meant as "--json": as a flag of one letter it would name nothing.
  auto const typed = word.starts_with("--") || word.size() == 2 ? flag : "-" + word;
  auto error = unknown(program, "flag", typed, known);
  return error;
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  for (auto const* const command : app.get_subcommands({})) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

int parse_and_run(CLI::App& app, Action& action, const std::vector<std::string>& arguments, Console& console,
                  bool json) {
  auto const program =
      arguments.empty() || arguments.front().starts_with('-') ? "cuda-agent" : "cuda-agent " + arguments.front();
  try {
    std::vector<std::string> backwards(arguments.rbegin(), arguments.rend());
    app.parse(backwards);
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;
    app.exit(asked, text, text);
    return print_result(console, text.str());
  } catch (const CLI::ParseError& error) {
    return print_failure(console, arguments.empty() ? "" : arguments.front(), usage(program, error.what()), json);
  }
  if (!action) return print_result(console, app.help());
  return action(console);
}

}  // namespace

std::string version() { return CUDA_AGENT_VERSION; }

std::optional<Error> unknown_word(const CLI::App& app, const std::vector<std::string>& arguments) {
  if (arguments.empty()) return std::nullopt;
  auto const& first = arguments.front();
  if (first.starts_with('-')) return unknown_flag(app, "cuda-agent", first);
  auto const* const command = find_command(app, first);
  if (command == nullptr) return unknown("cuda-agent", "command", first, command_names(app));
  for (auto word = arguments.begin() + 1; word != arguments.end() && *word != "--"; ++word) {
    if (auto error = unknown_flag(*command, "cuda-agent " + first, *word)) return error;
  }
  return std::nullopt;
}

int run_line(const std::vector<std::string>& arguments, Console& console) {
  Action action;
  CLI::App app("Judges CUDA kernels: builds them, checks them on random inputs, times them against PyTorch.",
               "cuda-agent");
  app.set_version_flag("--version", "cuda-agent " + version(), "Print the version and exit");
  app.require_subcommand(0, 1);
  app.footer(
      "Exit codes: 0 pass, 1 internal error, 2 usage, 3 environment, 4 policy violation, 5 compile error,\n"
      "6 wrong output or crash, 7 slower than demanded, 8 timeout, 9 task at fault, 130 interrupted.");
  app.get_formatter()->column_width(32);
  setup_commands(app, action);

  auto const json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  if (auto const error = unknown_word(app, arguments)) {
    return print_failure(console, arguments.front().starts_with('-') ? "" : arguments.front(), *error, json);
  }
  return parse_and_run(app, action, arguments, console, json);
}

void setup_commands(CLI::App& app, Action& action) {
  setup_init(app, action);
  setup_compile(app, action);
  setup_verify(app, action);
  setup_profile(app, action);
  setup_run(app, action);
  setup_watch(app, action);
  setup_grade(app, action);
  setup_check_verdict(app, action);
  setup_session(app, action);
  setup_doctor(app, action);
  setup_selftest(app, action);
  setup_policy(app, action);
  setup_clean(app, action);
  setup_schema(app, action);
  setup_completion(app, action);
  setup_worker_module(app, action);
}

}  // namespace cuda_agent::cli
