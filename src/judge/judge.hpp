// The judge: owns the workers of one task and answers asks about candidates.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "build/extension.hpp"
#include "build/toolchain.hpp"
#include "cuda_agent/verdict.hpp"
#include "judge/precision.hpp"
#include "util/deadline.hpp"
#include "util/progress.hpp"
#include "workspace/workspace.hpp"

namespace cuda_agent::judge {

class Supply;

enum class Device { automatic, cpu, cuda };
enum class Contract { cuda_agent, kernelbench };
enum class Baseline { eager, compiled, both };
/// A layer of protection that can be left out, to see what it is there for.
enum class Layer {
  none,
  comparison,    ///< results are not compared
  fresh_inputs,  ///< every call gets the inputs of the first
  seal,          ///< the candidate's worker keeps all system calls
  stopping,      ///< the candidate's worker runs on while it is not called
};

enum class Stage { compile, verify, profile, run };  ///< where the pipeline stops

struct Options {
  Stage stage = Stage::run;
  Device device = Device::automatic;
  std::string gpu;               ///< index or UUID; empty = first visible
  std::filesystem::path python;  ///< empty = found (build::find_interpreter)
  std::string architecture;      ///< --arch
  double timeout = 600;          ///< seconds for the whole ask
  double compile_timeout = 120;  ///< seconds one compiler may take
  double call_timeout = 60;      ///< seconds one forward of the candidate may take, and its import
  int trials = 5;
  std::optional<std::uint64_t> seed;              ///< replays; no reward
  std::optional<std::uint64_t> constructor_seed;  ///< of Model and ModelNew, where it is not `seed`
  std::optional<double> rtol;
  std::optional<double> atol;
  PrecisionRule precision = PrecisionRule::same;
  bool other_inputs = true;  ///< false: none of other signs and sizes than get_inputs draws
  Contract contract = Contract::cuda_agent;
  std::uint64_t gpu_memory = 0;  ///< bytes of the GPU that a candidate may hold between its calls; 0: no limit
  bool trace_kernels = false;    ///< on a GPU, when the candidate is timed: tell which kernels it launches
  bool keep_going = false;       ///< all trials even after a failure
  Baseline baseline = Baseline::both;
  std::string compile_mode = "default";
  std::optional<double> require_speedup;
  /// Seconds of timed rounds while a ratio is unstable (StoppingRule::patience). None: by the device.
  std::optional<double> patience;
  bool task_pinned = false;     ///< model.py comes from outside of the workspace, or has the hash that was asked for
  bool policy = true;           ///< false: the rules of the policy are not asked; no reward
  Layer without = Layer::none;  ///< what is left out; no reward
  bool strict_sandbox = false;  ///< refuse to run candidates with less than every protection
  int threads = 0;              ///< CPU threads of every worker; 0 = all cores but one, four at the most
  bool front_only = false;      ///< stops once everything is built and its rules are asked: no worker is started
};

/// Where the installation keeps what the judge needs at run time.
struct Installation {
  std::filesystem::path support;         ///< binding.cpp, binding_registry.h
  std::filesystem::path worker_sources;  ///< sources of _cuda_agent and its Python side
  std::filesystem::path worker_modules;  ///< prebuilt modules, may be absent
  std::filesystem::path policy;          ///< policy.json, rules/
  std::filesystem::path templates;       ///< what `init` writes, SKILL.md
};

/// One ask, from the snapshot to the verdict; never throws for what a candidate, task or machine can do. `scratch` is
/// a private folder for this ask. The verdict's command, time, workspace, build (unless stage is run/verify/profile and
/// the build failed), correctness, speed, protections, environment and timings are filled. `supply`: whose workers
/// are used; null for new ones.
Verdict judge(const workspace::Workspace& workspace, const workspace::Snapshot& snapshot, const Options& options,
              const Installation& installation, const build::Cache& cache, const std::filesystem::path& scratch,
              util::Progress& progress, util::Deadline deadline, Supply* supply = nullptr);

/// Tells a supply of the workers that an ask will need. Errors: what such an ask would find missing as well.
/// `workspace`: its top folder, where model_new.py can be looked at already.
Result<void> announce(const std::string& task_sha256, const std::filesystem::path& workspace, const Options& options,
                      const Installation& installation, const build::Cache& cache, util::Progress& progress,
                      util::Deadline deadline, Supply& supply);

}  // namespace cuda_agent::judge
