#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/installation.hpp"
#include "cli/outcome.hpp"
#include "cli/skeleton.hpp"
#include "cli/task_reader.hpp"
#include "cli/workspace_files.hpp"
#include "util/files.hpp"
#include "util/text.hpp"

namespace cuda_agent::cli {

namespace fs = std::filesystem;

namespace {

constexpr double k_reading_seconds = 60;

/// model.py as it is, and a skeleton that compiles and says where to begin.
Result<NewFiles> task_files(const InitOptions& options) {
  auto content = util::read_file(options.task, std::size_t{4} << 20);
  if (!content) return fail(Outcome::usage_error, content.error().message, {"give the task's file: --task model.py"});
  auto const python = any_python(options.python);
  if (!python) return fail(python.error());
  auto const name = kernel_name(fs::path(options.task).stem().string());
  auto const deadline = util::Deadline::after(std::chrono::duration<double>(k_reading_seconds));
  auto model_new = model_new_for(options.task, name, *python, deadline);
  if (!model_new) return fail(model_new.error());
  NewFiles files;
  files["model.py"] = {std::move(*content), false, false};
  files["model_new.py"] = {std::move(*model_new), false, false};
  for (auto& [path, text] : kernel_skeleton(name)) files[path] = {text, false, false};
  return files;
}

Result<NewFiles> planned_files(const InitOptions& options) {
  auto const installation = find_installation();
  if (!installation) return fail(installation.error());
  auto files = common_files(*installation);
  if (!files) return files;
  auto subject = options.task.empty() ? example_files(*installation) : task_files(options);
  if (!subject) return subject;
  files->merge(*subject);
  return files;
}

tl::unexpected<Error> would_overwrite(const InitOptions& options, const std::vector<std::string>& names) {
  std::vector<std::string> hints{"keep them and give another folder, or overwrite them with --force"};
  if (options.task.empty()) hints.emplace_back("to start from a task of your own: cuda-agent init --task model.py");
  return fail(Outcome::usage_error,
              fmt::format("nothing was written: {} in {} would be overwritten", util::join(names, ", "),
                          util::escape_untrusted(options.folder)),
              std::move(hints));
}

/// Lets utils/ find this program when it is not on PATH. A convenience: without it everything else works.
void note_binary(const fs::path& folder) {
  auto const self = util::own_executable();
  if (self.empty() || !util::make_folders(folder / ".cuda-agent")) return;
  (void)util::write_file(folder / ".cuda-agent" / "binary", self.string() + "\n");
}

Result<std::vector<std::string>> make_workspace(const InitOptions& options) {
  auto files = planned_files(options);
  if (!files) return fail(files.error());
  // A project's own list of ignored files stays; the state folder hides itself anyhow.
  std::error_code error;
  if (fs::exists(fs::symlink_status(fs::path(options.folder) / ".gitignore", error))) files->erase(".gitignore");
  auto const in_the_way = conflicts(*files, options.folder);
  if (!in_the_way.empty() && !options.force) return would_overwrite(options, in_the_way);
  if (auto written = write_files(*files, options.folder); !written) return fail(written.error());
  note_binary(options.folder);
  std::vector<std::string> names;
  names.reserve(files->size());
  for (auto const& [name, file] : *files) names.push_back(name);
  return names;
}

std::string next_command(const InitOptions& options) {
  auto const* const command = options.task.empty() ? "run" : "compile";
  auto const here = options.folder == "." ? std::string() : " " + util::escape_untrusted(options.folder);
  return fmt::format("cuda-agent {}{}", command, here);
}

std::string as_text(const InitOptions& options, const std::vector<std::string>& names) {
  auto text = fmt::format("a workspace is in {}\n", util::escape_untrusted(options.folder));
  for (auto const& name : names) {
    if (name.starts_with("kernels/") || name.starts_with("model")) text += fmt::format("  {}\n", name);
  }
  if (!options.task.empty()) text += "begin in model_new.py: ModelNew.forward says what is asked and where\n";
  return text + fmt::format("next: {}\n", next_command(options));
}

}  // namespace

int run_init(const InitOptions& options, Console& console) {
  auto const names = make_workspace(options);
  if (!names) return print_failure(console, "init", names.error(), options.output.json);
  if (options.output.json) {
    std::error_code error;
    nlohmann::json const result{{"schema", "cuda-agent/init/1"},
                                {"workspace", fs::canonical(options.folder, error).string()},
                                {"files", *names},
                                {"next", next_command(options)}};
    return print_result(console, result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  return options.output.quiet ? 0 : print_result(console, as_text(options, *names));
}

void setup_init(CLI::App& app, Action& action) {
  auto options = std::make_shared<InitOptions>();
  auto* const command = add_command(app, "init", "Make a workspace: the example, or a skeleton for a task");
  command->add_option("folder", options->folder, "Where to make it [default: the current folder]")
      ->option_text("FOLDER");
  command
      ->add_option("--task", options->task,
                   "A KernelBench-style model.py to write a skeleton for [default: copy the example]")
      ->option_text("FILE");
  command->add_option("--python", options->python, "The Python that parses the task [default: python3]")
      ->option_text("FILE");
  command->add_flag("--force", options->force, "Overwrite files that are there");
  add_output_flags(*command, options->output);
  command->callback(
      [options, &action] { action = [options](Console& console) { return run_init(*options, console); }; });
}

}  // namespace cuda_agent::cli
