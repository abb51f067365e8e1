#include "cli/completion.hpp"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <spdlog/fmt/fmt.h>

#include "util/text.hpp"

namespace cuda_agent::cli {

namespace {

/// What a shell needs to know of a flag.
struct Flag {
  std::vector<std::string> names;  ///< "-v", "--verbose"
  std::string description;         ///< without the default
  std::vector<std::string> words;  ///< what it takes, when that is a few words
  bool takes_value = false;
  bool takes_file = false;
};

struct Command {
  std::string name;
  std::string description;
  std::vector<Flag> flags;
  std::vector<std::string> words;  ///< of its positional argument; empty = a folder
};

std::vector<std::string> alternatives(const std::string& text) {
  std::vector<std::string> words;
  if (text.find('|') == std::string::npos) return words;
  std::istringstream parts(text);
  for (std::string word; std::getline(parts, word, '|');) words.push_back(word);
  return words;
}

Flag flag_of(const CLI::Option& option) {
  Flag flag;
  for (auto const& name : option.get_snames()) flag.names.push_back("-" + name);
  for (auto const& name : option.get_lnames()) flag.names.push_back("--" + name);
  auto const& text = option.get_description();
  flag.description = util::trim(text.substr(0, text.find(" [default")));
  flag.words = alternatives(option.get_option_text());
  flag.takes_value = !util::trim(option.get_option_text()).empty();
  flag.takes_file = option.get_option_text() == "FILE";
  return flag;
}

std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> commands;
  for (auto const* const subcommand : app.get_subcommands({})) {
    if (subcommand->get_group().empty()) continue;
    Command command{subcommand->get_name(), subcommand->get_description(), {}, {}};
    for (auto const* const option : subcommand->get_options()) {
      if (option->get_positional()) {
        auto const words = alternatives(option->get_option_text());
        command.words.insert(command.words.end(), words.begin(), words.end());
      } else {
        command.flags.push_back(flag_of(*option));
      }
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

/// Inside single quotes of a POSIX shell and of zsh.
std::string quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return "'" + text + "'";
}

std::string fish_quoted(std::string text) {
  for (std::size_t at = 0; (at = text.find_first_of("'\\", at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return "'" + text + "'";
}

/// zsh's _arguments reads brackets and colons.
std::string zsh_text(std::string text) {
  for (std::size_t at = 0; (at = text.find_first_of("[]:", at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

std::string bash_script(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (auto const& command : commands) names.push_back(command.name);
  std::string cases;
  for (auto const& command : commands) {
    std::vector<std::string> flags;
    for (auto const& flag : command.flags) flags.insert(flags.end(), flag.names.begin(), flag.names.end());
    cases += fmt::format("    {}:-*) words='{}' ;;\n", command.name, util::join(flags, " "));
    for (auto const& flag : command.flags) {
      if (flag.words.empty()) continue;
      cases +=
          fmt::format("    {}:{}:*) words='{}' ;;\n", command.name, flag.names.back(), util::join(flag.words, " "));
    }
    if (!command.words.empty())
      cases += fmt::format("    {}:*) words='{}' ;;\n", command.name, util::join(command.words, " "));
  }
  return fmt::format(R"(# cuda-agent completion for bash: source <(cuda-agent completion bash)
_cuda_agent() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD - 1]}}" words=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$word"))
    return
  fi
  [[ $before == -* ]] && before="$before:" || before=''
  case "${{COMP_WORDS[1]}}:$before$word" in
{}  esac
  [[ -n $words ]] && COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _cuda_agent cuda-agent
)",
                     util::join(names, " "), cases);
}

std::string zsh_argument(const Flag& flag, const std::string& name) {
  auto text = fmt::format("{}[{}]", name, zsh_text(flag.description));
  if (!flag.words.empty()) {
    text += fmt::format(":value:({})", util::join(flag.words, " "));
  } else if (flag.takes_value) {
    text += flag.takes_file ? ":file:_files" : ":value: ";
  }
  return quoted(text);
}

std::string zsh_script(const std::vector<Command>& commands) {
  std::string names;
  std::string cases;
  for (auto const& command : commands) {
    names += fmt::format("    {}\n", quoted(command.name + ":" + zsh_text(command.description)));
    cases += fmt::format("    {})\n      _arguments", command.name);
    for (auto const& flag : command.flags) {
      for (auto const& name : flag.names) cases += fmt::format(" \\\n        {}", zsh_argument(flag, name));
    }
    cases += command.words.empty() ? " \\\n        '*:folder:_files -/'"
                                   : fmt::format(" \\\n        '1:word:({})'", util::join(command.words, " "));
    cases += "\n      ;;\n";
  }
  return fmt::format(R"(#compdef cuda-agent
# cuda-agent completion for zsh: source <(cuda-agent completion zsh), after compinit
_cuda_agent() {{
  local -a commands
  commands=(
{})
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
{}  esac
}}
compdef _cuda_agent cuda-agent
)",
                     names, cases);
}

std::string fish_script(const std::vector<Command>& commands) {
  std::string text = "# cuda-agent completion for fish: cuda-agent completion fish | source\n";
  for (auto const& command : commands) {
    text += fmt::format("complete -c cuda-agent -f -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        fish_quoted(command.description));
    auto const when = fmt::format("-n '__fish_seen_subcommand_from {}'", command.name);
    for (auto const& flag : command.flags) {
      text += fmt::format("complete -c cuda-agent {}", when);
      for (auto const& name : flag.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!flag.words.empty()) {
        text += fmt::format(" -x -a {}", fish_quoted(util::join(flag.words, " ")));
      } else if (flag.takes_value) {
        text += flag.takes_file ? " -r -F" : " -x";
      }
      text += fmt::format(" -d {}\n", fish_quoted(flag.description));
    }
    if (!command.words.empty())
      text += fmt::format("complete -c cuda-agent {} -f -a {}\n", when, fish_quoted(util::join(command.words, " ")));
  }
  return text;
}

}  // namespace

std::string completion_script(const CLI::App& app, Shell shell) {
  auto const commands = commands_of(app);
  switch (shell) {
    case Shell::bash:
      return bash_script(commands);
    case Shell::zsh:
      return zsh_script(commands);
    case Shell::fish:
      return fish_script(commands);
  }
  return {};
}

}  // namespace cuda_agent::cli
