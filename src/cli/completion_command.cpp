#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/completion.hpp"
#include "cli/flags.hpp"
#include "cli/outcome.hpp"

namespace cuda_agent::cli {

void setup_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  auto* const command = add_command(app, "completion", "Print a script that completes commands and flags in a shell");
  command->add_option("shell", *shell, "The shell")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}))
      ->option_text("bash|zsh|fish");
  command->callback([shell, &app, &action] {
    action = [shell, &app](Console& console) {
      auto const which = *shell == "bash" ? Shell::bash : *shell == "zsh" ? Shell::zsh : Shell::fish;
      return print_result(console, completion_script(app, which));
    };
  });
}

}  // namespace cuda_agent::cli
