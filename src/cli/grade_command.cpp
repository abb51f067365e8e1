#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"

namespace cuda_agent::cli {

void setup_grade(CLI::App& app, Action& action) {
  auto options = std::make_shared<AskOptions>();
  options->command = "grade";
  options->grade = true;
  options->judge.stage = judge::Stage::run;
  options->judge.strict_sandbox = true;
  options->judge.timeout = 1800;
  options->judge.trace_kernels = true;
  options->judge.patience = 3;
  auto* const command = add_command(app, "grade", "The final, signed reward: `run` three times on a pinned task");
  add_workspace(*command, options->workspace);
  add_task_flags(*command, *options);
  add_build_flags(*command, options->judge);
  add_check_flags(*command, options->judge, SeedFlag::no);
  add_speed_flags(*command, options->judge);
  add_device_flags(*command, options->judge);
  add_time_limits(*command, options->judge);
  add_timings_flags(*command, options->output);
  add_output_flags(*command, options->output);
  command->callback(
      [options, &action] { action = [options](Console& console) { return run_ask(*options, console); }; });
}

}  // namespace cuda_agent::cli
