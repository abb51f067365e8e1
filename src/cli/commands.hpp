// The commands: for each an options struct, `setup_x` (its flags) and `run_x` (what it does; the exit code).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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
  bool timings = false;       ///< of an ask: show where its time went
  std::string timings_trace;  ///< of an ask: write it there as a trace; empty: nowhere
};

/// compile, verify, profile and run: one pipeline, stopped at different points.
struct AskOptions {
  OutputOptions output;
  std::string command;  ///< as typed
  std::string workspace = ".";
  std::string task;         ///< folder whose model.py counts; empty: the workspace's
  std::string task_sha256;  ///< what model.py must be; empty: anything
  bool grade = false;       ///< three asks, one signed answer
  /// Whether a resident session answers; unset: where it is the rule.
  std::optional<bool> session;
  judge::Options judge;
};

void setup_compile(CLI::App& app, Action& action);
void setup_verify(CLI::App& app, Action& action);
void setup_profile(CLI::App& app, Action& action);
void setup_run(CLI::App& app, Action& action);
void setup_grade(CLI::App& app, Action& action);
/// `run` at every save.
void setup_watch(CLI::App& app, Action& action);
int run_watch(const AskOptions& options, Console& console);
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

struct PolicyOptions {
  OutputOptions output;
  std::string action;    ///< show, explain or check
  std::string argument;  ///< explain: the rule; check: the workspace
  std::string python;    ///< parses model_new.py; empty = found
  double timeout = 60;   ///< seconds
};
void setup_policy(CLI::App& app, Action& action);
int run_policy(const PolicyOptions& options, Console& console);

struct SelftestOptions {
  OutputOptions output;
  bool quick = false;
  std::string only = "*";       ///< a shell pattern for names of cases
  std::string device = "auto";  ///< auto, cuda or cpu
  int jobs = 0;                 ///< cases at a time; 0 = by the machine
  int repeat = 1;               ///< how often each case is judged
  std::string python;           ///< the judge's; empty = found
  bool keep = false;            ///< the workspaces
  bool prove_layers = false;    ///< exploits are judged without the layers that catch them, too
};
void setup_selftest(CLI::App& app, Action& action);
int run_selftest(const SelftestOptions& options, Console& console);

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

struct CheckVerdictOptions {
  OutputOptions output;
  std::string file;
  std::string key;        ///< the public key that must have signed it; empty: any
  std::string workspace;  ///< replay the seeds there; empty: do not
  std::string task;       ///< folder of the replay's model.py; empty: the workspace's
  judge::Options judge;
};
struct SessionOptions {
  OutputOptions output;
  std::string action;  ///< start, status, stop, log; serve: be it
  int standbys = 1;
  int spares = 1;
  double idle = 600;  ///< seconds
  std::uint64_t idle_memory = 4'000'000'000;
  std::uint64_t idle_gpu_memory = 8'000'000'000;
};
void setup_session(CLI::App& app, Action& action);
int run_session(const SessionOptions& options, Console& console);

void setup_check_verdict(CLI::App& app, Action& action);
int run_check_verdict(const CheckVerdictOptions& options, Console& console);

}  // namespace cuda_agent::cli
