#include "judge/worker_setups.hpp"

#include <chrono>

#include "build/worker_module.hpp"
#include "judge/machine.hpp"
#include "judge/policy_stage.hpp"
#include "judge/worker_command.hpp"
#include "util/files.hpp"

namespace cuda_agent::judge {
namespace fs = std::filesystem;

WorkerSetups worker_setups(const Machine& machine, const Options& options, const fs::path& module,
                           const fs::path& torch_cache) {
  bool const timed = options.stage == Stage::run || options.stage == Stage::profile;
  WorkerSetup setup;
  setup.interpreter = &machine.interpreter;
  setup.module_folder = module;
  setup.device = machine.backend->name();
  setup.needs = machine.backend->worker_needs();
  setup.threads = options.threads;
  setup.tf32 = options.precision == PrecisionRule::tf32;
  WorkerSetups made{setup, setup};
  made.candidate.role = Role::candidate;
  made.reference.cache = torch_cache;
  made.reference.compiler = timed && options.baseline != Baseline::eager;
  return made;
}

Result<fs::path> make_torch_cache(const build::Cache& cache) {
  fs::path kept = cache.root / "torch-compile";
  if (auto made = util::make_folders(kept / inductor_headers); !made) return fail(made.error());
  return kept;
}

namespace {

/// So that the ask finds it answered. A copy is checked: the file is not ours, and may be another one in a moment.
Result<void> ask_rules_early(const std::filesystem::path& workspace, const Machine& machine,
                             const Installation& installation, util::Deadline deadline, Supply& supply) {
  constexpr std::size_t most = std::size_t{4} << 20;
  constexpr const char* name = "model_new.py";
  auto const text = util::read_file(workspace / name, most);
  if (!text) return {};  // the ask itself says so
  std::error_code problem;
  auto const folder = util::TemporaryFolder::make(std::filesystem::temp_directory_path(problem), "cuda-agent-rules-");
  if (!folder) return fail(folder.error());
  if (auto written = util::write_file(folder->path() / name, *text); !written) return written;
  // Others may wait for the session: a file that takes longer is left to its own ask.
  auto const soon = deadline.earlier(util::Deadline::after(std::chrono::seconds(3)));
  auto const found = check_model_new(folder->path(), machine.interpreter, installation.policy, soon, supply.rules());
  return found ? Result<void>() : fail(found.error());
}

}  // namespace

Result<void> announce(const std::string& task_sha256, const std::filesystem::path& workspace, const Options& options,
                      const Installation& installation, const build::Cache& cache, util::Progress& progress,
                      util::Deadline deadline, Supply& supply) {
  auto const machine = find_machine(options, supply, deadline);
  if (!machine) return fail(machine.error());
  auto const module = build::worker_module(installation.worker_sources, installation.worker_modules, machine->toolchain,
                                           machine->interpreter, cache, progress, deadline);
  if (!module) return fail(module.error());
  auto const kept = make_torch_cache(cache);
  if (!kept) return fail(kept.error());
  auto const setups = worker_setups(*machine, options, *module, *kept);
  supply.expect(setups.reference, setups.candidate, task_sha256);
  if (!options.policy || supply.rules() == nullptr) return {};
  return ask_rules_early(workspace, *machine, installation, deadline, supply);
}

}  // namespace cuda_agent::judge
