#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "build/extension.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/outcome.hpp"
#include "util/text.hpp"
#include "workspace/workspace.hpp"

namespace cuda_agent::cli {

namespace fs = std::filesystem;

namespace {

Result<std::vector<std::string>> clean_workspace(const CleanCommandOptions& options, util::Progress& progress) {
  auto const workspace = workspace::open_workspace(options.workspace);
  if (!workspace) return fail(workspace.error());
  auto const deadline = util::Deadline::after(std::chrono::duration<double>(options.timeout));
  auto const lock = workspace::Lock::acquire(*workspace, "cuda-agent clean", deadline, [&](const std::string& other) {
    progress.note(fmt::format("waiting for the workspace, which is held by {}", other));
  });
  if (!lock) return fail(lock.error());
  return workspace::clean(*workspace, {.history = options.all});
}

/// Empties the cache that all workspaces of this user share. Only what `build` puts there is touched: the folder may
/// have been named by the user.
Result<std::vector<std::string>> clean_cache() {
  auto const cache = build::open_cache({});
  if (!cache) return fail(cache.error());
  std::vector<std::string> removed;
  std::error_code error;
  for (auto const* const name : {"architectures", "extensions", "headers", "interpreters", "manifests", "nvcc-steps",
                                 "objects", "prefixes", "torch-compile", "worker"}) {
    auto const folder = cache->root / name;
    if (!fs::is_directory(fs::symlink_status(folder, error))) continue;
    if (auto gone = workspace::remove_tree(folder); !gone) return fail(gone.error());
    removed.push_back(folder.string());
  }
  return removed;
}

Result<std::vector<std::string>> clean_all(const CleanCommandOptions& options, util::Progress& progress) {
  auto removed = clean_workspace(options, progress);
  if (!removed || !options.cache) return removed;
  auto const from_cache = clean_cache();
  if (!from_cache) return fail(from_cache.error());
  removed->insert(removed->end(), from_cache->begin(), from_cache->end());
  return removed;
}

}  // namespace

int run_clean(const CleanCommandOptions& options, Console& console) {
  auto const progress = make_progress(console, verbosity(options.output));
  auto const removed = clean_all(options, *progress);
  if (!removed) return print_failure(console, "clean", removed.error(), options.output.json);
  if (options.output.json) {
    nlohmann::json const result{{"schema", "cuda-agent/clean/1"}, {"removed", *removed}};
    return print_result(console, result.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  if (options.output.quiet) return 0;
  std::string text = removed->empty() ? "nothing to remove\n" : "";
  for (auto const& name : *removed) text += fmt::format("removed {}\n", util::escape_untrusted(name));
  return print_result(console, text);
}

void setup_clean(CLI::App& app, Action& action) {
  auto options = std::make_shared<CleanCommandOptions>();
  auto* const command = add_command(app, "clean", "Remove what earlier commands left in the workspace");
  add_workspace(*command, options->workspace);
  command->add_flag("--all", options->all, "Remove the history of verdicts as well");
  command->add_flag("--cache", options->cache,
                    "Remove the cache of compiled objects that all workspaces share as well");
  add_timeout_flag(*command, options->timeout);
  add_output_flags(*command, options->output);
  command->callback(
      [options, &action] { action = [options](Console& console) { return run_clean(*options, console); }; });
}

}  // namespace cuda_agent::cli
