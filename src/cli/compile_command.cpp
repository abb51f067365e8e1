#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"

namespace cuda_agent::cli {

void setup_compile(CLI::App& app, Action& action) {
  auto options = std::make_shared<AskOptions>();
  options->command = "compile";
  options->judge.stage = judge::Stage::compile;
  auto* const command = add_command(app, "compile", "Build the candidate's kernels into cuda_extension");
  add_workspace(*command, options->workspace);
  add_policy_flag(*command, options->judge);
  add_build_flags(*command, options->judge);
  add_device_flags(*command, options->judge);
  add_time_limits(*command, options->judge);
  add_timings_flags(*command, options->output);
  add_output_flags(*command, options->output);
  command->callback([options, command, &action] {
    // An architecture is a GPU's.
    auto const asked = command->count("--device") > 0;
    if (!asked && !options->judge.architecture.empty()) options->judge.device = judge::Device::cuda;
    action = [options](Console& console) { return run_ask(*options, console); };
  });
}

}  // namespace cuda_agent::cli
