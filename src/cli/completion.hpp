// Scripts that teach a shell the commands and their flags.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace cuda_agent::cli {

enum class Shell { bash, zsh, fish };

/// The script for `shell`, made from the commands of `app` (hidden ones are left out).
std::string completion_script(const CLI::App& app, Shell shell);

}  // namespace cuda_agent::cli
