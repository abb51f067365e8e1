// The commands: for each an options struct, `setup_x` (its flags) and `run_x` (what it does; the exit code).
#pragma once

#include <functional>
#include <string>

#include "cli/console.hpp"
#include "judge/judge.hpp"

namespace CLI {
class App;
}

namespace cuda_agent::cli {

/// What the parsed line asks for. Set by the command that was named; run after parsing.
using Action = std::function<int(Console&)>;

struct OutputOptions {
  bool json = false;
  bool verbose = false;
  bool quiet = false;
};

/// compile, verify, profile and run: one pipeline, stopped at different points.
struct AskOptions {
  OutputOptions output;
  std::string command;  ///< as typed
  std::string workspace = ".";
  judge::Options judge;
};

void setup_compile(CLI::App& app, Action& action);
void setup_verify(CLI::App& app, Action& action);
void setup_profile(CLI::App& app, Action& action);
void setup_run(CLI::App& app, Action& action);
int run_ask(const AskOptions& options, Console& console);

struct InitOptions {
  OutputOptions output;
  std::string folder = ".";
  std::string task;    ///< a KernelBench-style file; empty = copy the example
  std::string python;  ///< reads the task's source; empty = found
  bool force = false;
};
void setup_init(CLI::App& app, Action& action);
int run_init(const InitOptions& options, Console& console);

struct DoctorOptions {
  OutputOptions output;
  std::string workspace = ".";
  judge::Options judge;
};
void setup_doctor(CLI::App& app, Action& action);
int run_doctor(const DoctorOptions& options, Console& console);

struct CleanCommandOptions {
  OutputOptions output;
  std::string workspace = ".";
  double timeout = 600;  ///< seconds to wait for the workspace
  bool all = false;      ///< the history too
  bool cache = false;    ///< the user-wide cache too
};
void setup_clean(CLI::App& app, Action& action);
int run_clean(const CleanCommandOptions& options, Console& console);

void setup_schema(CLI::App& app, Action& action);

void setup_completion(CLI::App& app, Action& action);

struct WorkerModuleOptions {
  OutputOptions output;
  std::string folder;
  std::string python;
  double timeout = 600;  ///< seconds
};
void setup_worker_module(CLI::App& app, Action& action);
int run_worker_module(const WorkerModuleOptions& options, Console& console);

/// All of them, in the order in which help lists them.
void setup_commands(CLI::App& app, Action& action);

}  // namespace cuda_agent::cli
