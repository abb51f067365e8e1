#include "judge/worker_setups.hpp"

#include "build/worker_module.hpp"
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

Result<void> announce(const std::string& task_sha256, const Options& options, const Installation& installation,
                      const build::Cache& cache, util::Progress& progress, util::Deadline deadline, Supply& supply) {
  auto const machine = find_machine(options, supply, deadline);
  if (!machine) return fail(machine.error());
  auto const module = build::worker_module(installation.worker_sources, installation.worker_modules, machine->toolchain,
                                           machine->interpreter, cache, progress, deadline);
  if (!module) return fail(module.error());
  auto const kept = make_torch_cache(cache);
  if (!kept) return fail(kept.error());
  auto const setups = worker_setups(*machine, options, *module, *kept);
  supply.expect(setups.reference, setups.candidate, task_sha256);
  return {};
}

}  // namespace cuda_agent::judge
