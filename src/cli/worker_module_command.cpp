#include <chrono>
#include <memory>

#include "build/toolchain.hpp"
#include "build/worker_module.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/installation.hpp"
#include "cli/outcome.hpp"
#include "util/text.hpp"

namespace cuda_agent::cli {

namespace fs = std::filesystem;

namespace {

Result<fs::path> build(const WorkerModuleOptions& options, util::Progress& progress) {
  auto const deadline = util::Deadline::after(std::chrono::duration<double>(options.timeout));
  auto const installation = find_installation();
  if (!installation) return fail(installation.error());
  auto const interpreter = build::find_interpreter(options.python, deadline);
  if (!interpreter) return fail(interpreter.error());
  auto const toolchain = build::find_toolchain(false, deadline);
  if (!toolchain) return fail(toolchain.error());
  return build::build_worker_module(installation->judge.worker_sources, options.folder, *toolchain, *interpreter,
                                    progress, deadline);
}

}  // namespace

int run_worker_module(const WorkerModuleOptions& options, Console& console) {
  auto progress = make_progress(console, verbosity(options.output));
  auto const built = build(options, *progress);
  progress.reset();
  if (!built) return print_failure(console, "worker-module", built.error(), options.output.json);
  if (options.output.quiet) return 0;
  return print_result(console, util::escape_untrusted(built->string()) + "\n");
}

void setup_worker_module(CLI::App& app, Action& action) {
  auto options = std::make_shared<WorkerModuleOptions>();
  auto* const command =
      add_command(app, "worker-module", "Build the worker module into a folder (used by the install)");
  command->group("");  // not listed
  command->add_option("folder", options->folder, "Where to put it")->required();
  add_python_flag(*command, options->python);
  add_timeout_flag(*command, options->timeout);
  add_output_flags(*command, options->output);
  command->callback(
      [options, &action] { action = [options](Console& console) { return run_worker_module(*options, console); }; });
}

}  // namespace cuda_agent::cli
