#include "judge/worker_command.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <sched.h>

#include "judge/interpreter_places.hpp"
#include "util/environment.hpp"

namespace cuda_agent::judge {
namespace fs = std::filesystem;
namespace {

constexpr const char* home_inside = "/tmp/home";

constexpr const char* start =
    "import json, sys; sys.path.insert(0, json.loads(sys.argv[1])['module']); "
    "import cuda_agent_worker; cuda_agent_worker.main()";

/// Threads of a model unless --threads says otherwise: one processor stays free for the supervisor and the system, and
/// four are the most. Every thread more is one more that a parallel region has to wait for after the worker was held:
/// with 15 of them, times of one model spread by a factor (docs/measured.md).
int threads_for_models(int wanted) {
  if (wanted > 0) return wanted;
  constexpr int most = 4;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  int const processors = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  return std::clamp(processors - 1, 1, most);
}

std::map<std::string, std::string> environment(const WorkerSetup& setup, const fs::path& cache_inside) {
  std::map<std::string, std::string> env = {
      {"PATH", "/usr/local/bin:/usr/bin:/bin"},
      {"HOME", home_inside},
      {"LANG", "C.UTF-8"},
      {"LC_ALL", "C.UTF-8"},
      {"TMPDIR", "/tmp"},
      {"PYTHONDONTWRITEBYTECODE", "1"},
      {"TORCH_SHOW_CPP_STACKTRACES", "0"},
      // Not torch alone: an extension may bring an OpenMP library of its own.
      {"OMP_NUM_THREADS", std::to_string(threads_for_models(setup.threads))},
      // Freed memory is kept: new pages take half of the time of a memory-bound model. Tensors have an allocator of
      // their own for that (src/worker/cpu_allocator.cpp); this is for what a kernel takes from malloc.
      {"MALLOC_MMAP_MAX_", "0"},
      {"MALLOC_TRIM_THRESHOLD_", "17179869184"},
  };
  for (auto const& [name, value] : setup.needs.environment) env[name] = value;
  if (setup.role == Role::reference) {
    env["TORCHINDUCTOR_CACHE_DIR"] = (cache_inside / "inductor").string();
    env["TRITON_CACHE_DIR"] = (cache_inside / "triton").string();
    // One compile at a time in the process itself: a pool of helpers costs more than it brings for one model.
    env["TORCHINDUCTOR_COMPILE_THREADS"] = "1";
    for (char const* name : {"CXX", "CC"}) {
      if (auto const value = util::get_env(name)) env[name] = *value;
    }
  }
  return env;
}

/// Everything where it is. A candidate finds no place to write to.
exec::Confinement confinement(const WorkerSetup& setup, const InterpreterPlaces& places,
                              std::map<std::string, std::string>& env) {
  exec::Confinement made;
  made.read = places.outside();
  made.read.push_back(setup.module_folder);
  made.read.push_back(setup.folder);
  made.device_nodes = setup.needs.device_nodes;
  if (setup.role == Role::reference) {
    made.write.push_back(setup.cache);
    env["TMPDIR"] = setup.cache.string();
  }
  return made;
}

}  // namespace

WorkerCommand worker_command(const WorkerSetup& setup, const exec::SandboxSupport& support) {
  WorkerCommand made;
  bool const boxed = support.bubblewrap;
  bool const reference = setup.role == Role::reference;
  made.folder_inside = boxed ? fs::path(reference ? "/task" : "/candidate") : setup.folder;
  fs::path const module_inside = boxed ? fs::path("/cuda-agent") : setup.module_folder;
  fs::path const cache_inside = boxed ? fs::path("/cache") : setup.cache;

  nlohmann::json config = {
      {"fd", worker_channel_fd},
      {"role", reference ? "reference" : "candidate"},
      {"device", setup.device},
      {"threads", threads_for_models(setup.threads)},
      {"module", module_inside.string()},
      {"paths", nlohmann::json::array()},
      {"tf32", setup.tf32},
      {"compiler", setup.compiler},
      // It holds expected results, and where nothing else keeps them apart the candidate's process is of the same user.
      {"hidden", !boxed && support.landlock == 0},
  };
  InterpreterPlaces const places(*setup.interpreter);
  auto const seen = [&](const fs::path& path) { return (boxed ? places.inside(path) : path).string(); };
  for (fs::path const& path : setup.interpreter->search_path) config["paths"].push_back(seen(path));

  exec::Command& command = made.command;
  // -u, since -I ignores PYTHONUNBUFFERED: what a killed worker had in its buffers would be lost.
  command.argv = {seen(setup.interpreter->executable), "-I", "-B", "-u", "-c", start, config.dump()};
  command.env = environment(setup, cache_inside);
  command.cwd = "/tmp";
  if (boxed) {
    exec::SandboxPlan plan;
    plan.home = home_inside;
    places.bind(plan);
    plan.device_nodes = setup.needs.device_nodes;
    plan.binds.push_back({setup.module_folder, module_inside, false, false});
    plan.binds.push_back({setup.folder, made.folder_inside, false, false});
    if (reference) {
      plan.binds.push_back({setup.cache, cache_inside, true, false});
      // Inductor keeps its precompiled headers (15 s each) in its default folder, whatever TORCHINDUCTOR_CACHE_DIR
      // says, and names that folder after the user.
      command.env["LOGNAME"] = "cuda-agent";
      plan.binds.push_back({setup.cache / inductor_headers, "/tmp/torchinductor_cuda-agent", true, false});
    }
    command.sandbox = std::move(plan);
  } else {
    command.env["HOME"] = setup.folder.string();
    command.no_capabilities = true;
    if (support.landlock > 0) command.confinement = confinement(setup, places, command.env);
  }
  return made;
}

}  // namespace cuda_agent::judge
