#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"

namespace cuda_agent::cli {

void add_run_flags(CLI::App& command, AskOptions& options) {
  options.command = "run";
  options.judge.stage = judge::Stage::run;
  add_workspace(command, options.workspace);
  add_session_flag(command, options);
  add_task_flags(command, options);
  add_policy_flag(command, options.judge);
  add_layer_flag(command, options.judge);
  add_build_flags(command, options.judge);
  add_check_flags(command, options.judge);
  add_speed_flags(command, options.judge);
  add_device_flags(command, options.judge);
  add_time_limits(command, options.judge);
  add_timings_flags(command, options.output);
  add_output_flags(command, options.output);
}

void setup_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<AskOptions>();
  auto* const command = add_command(app, "run", "Build, check, time, and say what the candidate is worth");
  add_run_flags(*command, *options);
  command->callback(
      [options, &action] { action = [options](Console& console) { return run_ask(*options, console); }; });
}

}  // namespace cuda_agent::cli
