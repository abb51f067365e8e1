// Command lines that a tool prints for a shell, without the shell.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuda_agent::build {

/// The words of `line`, where it consists of plain characters, double quotes and $NAME with NAME in `variables`.
/// Nothing when there is anything else that means something to a shell: other quotes, escapes, patterns, redirections,
/// unknown variables, an unfinished quote. What it does not understand exactly, it does not guess.
std::optional<std::vector<std::string>> split_command(std::string_view line,
                                                      const std::map<std::string, std::string>& variables);

}  // namespace cuda_agent::build
