#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"

namespace cuda_agent::cli {

void setup_verify(CLI::App& app, Action& action) {
  auto options = std::make_shared<AskOptions>();
  options->command = "verify";
  options->judge.stage = judge::Stage::verify;
  auto* const command = add_command(app, "verify", "Build, then compare the candidate with the reference");
  add_workspace(*command, options->workspace);
  add_policy_flag(*command, options->judge);
  add_layer_flag(*command, options->judge);
  add_session_flag(*command, *options);
  add_task_flags(*command, *options);
  add_check_flags(*command, options->judge);
  add_device_flags(*command, options->judge);
  add_time_limits(*command, options->judge);
  add_timings_flags(*command, options->output);
  add_output_flags(*command, options->output);
  command->callback(
      [options, &action] { action = [options](Console& console) { return run_ask(*options, console); }; });
}

}  // namespace cuda_agent::cli
