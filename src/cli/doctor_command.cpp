#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "build/extension.hpp"
#include "build/toolchain.hpp"
#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/gpu_probe.hpp"
#include "cli/installation.hpp"
#include "cli/outcome.hpp"
#include "device/cuda/cuda_backend.hpp"
#include "exec/sandbox.hpp"
#include "util/files.hpp"
#include "util/interrupt.hpp"
#include "util/text.hpp"
#include "workspace/workspace.hpp"

namespace cuda_agent::cli {

namespace fs = std::filesystem;

namespace {

/// One thing that was looked for.
struct Finding {
  std::string name;
  bool found = false;
  std::string detail;
  std::vector<std::string> hints;  ///< what to do about it
};

struct Diagnosis {
  std::vector<Finding> findings;
  std::vector<Protection> protections;
  bool cpu = false;    ///< candidates can be judged on the CPU
  bool build = false;  ///< CUDA can be compiled
  bool cuda = false;   ///< candidates can be judged on a GPU
};

Finding missing(std::string name, const Error& error) {
  auto detail = error.message;
  if (!error.detail.empty()) detail += ": " + util::split_lines(error.detail).back();
  return {std::move(name), false, std::move(detail), error.hints};
}

Finding look_at_program(const Result<Installation>& installation) {
  auto const self = fmt::format("cuda-agent {} at {}", version(), util::own_executable().string());
  if (!installation) return missing("program", installation.error());
  return {"program", true, self, {}};
}

Finding look_at_python(const Result<build::Interpreter>& python) {
  if (!python) return missing("python", python.error());
  return {"python",
          true,
          fmt::format("{}, Python {}, torch {}", python->executable.string(), python->python_version,
                      python->torch_version),
          {}};
}

Finding look_at_compiler(const Result<build::Toolchain>& toolchain) {
  if (!toolchain) return missing("compiler", toolchain.error());
  return {"compiler", true, fmt::format("{} ({})", toolchain->host.executable.string(), toolchain->host.version), {}};
}

Finding look_at_nvcc(const Result<build::Toolchain>& toolchain) {
  if (!toolchain) return missing("nvcc", toolchain.error());
  if (!toolchain->nvcc) return {"nvcc", false, "not found", {"install the CUDA Toolkit, or set CUDA_HOME to it"}};
  return {"nvcc", true, fmt::format("{} ({})", toolchain->nvcc->executable.string(), toolchain->nvcc->version), {}};
}

Finding look_at_gpu(const GpuProbe& probe) {
  if (probe.gpus.empty()) {
    return {
        "gpu",
        false,
        probe.problem,
        {"kernels can be compiled for a GPU here (compile --arch 90a) and are judged by their C++ twins on the CPU"}};
  }
  return {"gpu", true, fmt::format("{}; driver for CUDA {}", util::join(probe.gpus, ", "), probe.driver_version), {}};
}

/// Whether candidates can be judged on the GPU: tried, up to where memory could be lent.
Finding look_at_cuda_judge(const Diagnosis& diagnosis, const Result<build::Interpreter>& python,
                           const std::string& gpu) {
  constexpr const char* name = "cuda";
  auto const backend = device::make_cuda_backend(gpu);
  if (!backend) return missing(name, backend.error());
  auto lent = (*backend)->allocate(1);
  if (!lent) return missing(name, lent.error());
  if (!diagnosis.build) return {name, false, "candidates cannot be compiled for the GPU", {"see nvcc above"}};
  if (python->torch_cuda.empty()) {
    return {name, false, "this torch was built without CUDA", {"install a torch with CUDA: pip install torch"}};
  }
  auto const facts = (*backend)->facts();
  return {name, true, fmt::format("judges on {} ({})", facts.at("device.name"), facts.at("device.uuid")), {}};
}

Finding look_at_sandbox() {
  auto const& support = exec::probe_sandbox();
  if (support.bubblewrap)
    return {"sandbox", true, fmt::format("bubblewrap at {}", support.bubblewrap_path.string()), {}};
  if (support.landlock > 0) {
    return {
        "sandbox",
        true,
        fmt::format("by landlock (version {}), weaker than bubblewrap: {}", support.landlock, support.reason),
        {"install bubblewrap (apt-get install bubblewrap) and allow user namespaces; in a container see README.md"}};
  }
  return {"sandbox",
          false,
          fmt::format("candidates are not confined: {}", support.reason),
          {"install bubblewrap (apt-get install bubblewrap) and allow user namespaces; in a container see README.md"}};
}

/// What a candidate's worker would have; of the filter only whether the kernel knows it.
std::vector<Protection> look_at_protections() {
  auto const& support = exec::probe_sandbox();
  auto all = exec::protections(support);
  all.push_back({"system-call filter", support.seccomp,
                 support.seccomp
                     ? "seccomp in the candidate's worker: no program is executed, no process made, none traced"
                     : "this kernel has no seccomp filters (CONFIG_SECCOMP_FILTER)"});
  if (support.seccomp) return all;
  auto const resting = exec::resting_on_filter(support);
  for (auto& one : all) {
    if (one.in_force && std::find(resting.begin(), resting.end(), one.name) != resting.end()) {
      one = {one.name, false, "rests on the system-call filter, which is not in force"};
    }
  }
  return all;
}

Finding look_at_cache() {
  auto const cache = build::open_cache({});
  if (cache) return {"cache", true, cache->root.string(), {}};
  auto finding = missing("cache", cache.error());
  finding.detail += "; each workspace then keeps a cache of its own";
  return finding;
}

Finding look_at_worker_module(const Result<Installation>& installation, const Result<build::Interpreter>& python) {
  Finding finding{"worker", true, "built on first use for this Python and torch, in about ten seconds", {}};
  if (!installation || !python) return {"worker", false, "needs the program's files and a Python with torch", {}};
  std::error_code error;
  auto const wanted = "_cuda_agent" + python->extension_suffix;
  for (fs::recursive_directory_iterator file(installation->judge.worker_modules, error), end; !error && file != end;
       file.increment(error)) {
    if (file->path().filename() == wanted) finding.detail = fmt::format("built at {}", file->path().string());
  }
  return finding;
}

Finding look_at_workspace(const std::string& folder) {
  auto const workspace = workspace::open_workspace(folder);
  if (!workspace) return missing("workspace", workspace.error());
  return {"workspace", true, workspace->root.string(), {}};
}

Diagnosis diagnose(const DoctorOptions& options, util::Progress& progress) {
  auto const deadline = util::Deadline::after(std::chrono::duration<double>(options.judge.timeout));
  progress.step("looking for the interpreter, compilers, GPU and sandbox");
  auto const installation = find_installation();
  auto const python = build::find_interpreter(options.judge.python, deadline);
  auto const host = build::find_toolchain(false, deadline);
  auto const cuda = build::find_toolchain(true, deadline);
  auto const gpus = probe_gpus();
  Diagnosis diagnosis;
  diagnosis.findings = {look_at_program(installation),
                        look_at_python(python),
                        look_at_compiler(host),
                        look_at_nvcc(cuda),
                        look_at_gpu(gpus),
                        look_at_sandbox(),
                        look_at_cache(),
                        look_at_worker_module(installation, python),
                        look_at_workspace(options.workspace)};
  diagnosis.protections = look_at_protections();
  diagnosis.cpu = installation && python && host;
  diagnosis.build = installation && python && cuda && cuda->nvcc;
  if (!gpus.gpus.empty()) {
    diagnosis.findings.insert(diagnosis.findings.begin() + 5, look_at_cuda_judge(diagnosis, python, options.judge.gpu));
    diagnosis.cuda = diagnosis.findings[5].found;
  }
  return diagnosis;
}

std::string summary(const Diagnosis& diagnosis) {
  if (!diagnosis.cpu) return "no candidate can be judged on this machine until what is missing is there";
  if (diagnosis.cuda) return "--device auto judges on the GPU";
  return fmt::format("--device auto judges on the CPU; CUDA {} be compiled here", diagnosis.build ? "can" : "cannot");
}

nlohmann::json as_json(const Diagnosis& diagnosis, int code) {
  auto findings = nlohmann::json::array();
  for (auto const& finding : diagnosis.findings) {
    findings.push_back({{"name", finding.name},
                        {"found", finding.found},
                        {"detail", util::escape_untrusted(finding.detail)},
                        {"hints", finding.hints}});
  }
  auto protections = nlohmann::json::array();
  for (auto const& one : diagnosis.protections) {
    protections.push_back(
        {{"name", one.name}, {"in_force", one.in_force}, {"detail", util::escape_untrusted(one.detail, 4096)}});
  }
  nlohmann::json device;
  if (diagnosis.cpu) device = diagnosis.cuda ? "cuda" : "cpu";
  return {{"schema", "cuda-agent/doctor/1"},
          {"version", version()},
          {"exit_code", code},
          {"message", summary(diagnosis)},
          {"device", device},
          {"can_judge_cpu", diagnosis.cpu},
          {"can_judge_cuda", diagnosis.cuda},
          {"can_compile_cuda", diagnosis.build},
          {"findings", findings},
          {"protections", protections}};
}

std::string as_text(const Diagnosis& diagnosis, bool colour) {
  auto const mark = [&](bool found) {
    auto const* const word = found ? "ok     " : "missing";
    if (!colour) return std::string(word);
    return fmt::format("\033[{}m{}\033[0m", found ? "32" : "33", word);
  };
  std::string text;
  for (auto const& finding : diagnosis.findings) {
    text +=
        fmt::format("{}  {:<10} {}\n", mark(finding.found), finding.name, util::escape_untrusted(finding.detail, 4096));
    if (finding.found) continue;
    for (auto const& hint : finding.hints) text += fmt::format("{:20} {}\n", "", util::escape_untrusted(hint, 4096));
  }
  text += "protections of a candidate's worker:\n";
  for (auto const& one : diagnosis.protections) {
    text += fmt::format("  {}  {:<21}  {}\n", one.in_force ? "in force    " : "not in force", one.name,
                        util::escape_untrusted(one.detail, 4096));
  }
  return text + summary(diagnosis) + "\n";
}

}  // namespace

int run_doctor(const DoctorOptions& options, Console& console) {
  auto progress = make_progress(console, verbosity(options.output));
  auto const diagnosis = diagnose(options, *progress);
  progress.reset();
  if (util::interrupted()) {
    return print_failure(console, "doctor", util::interrupted_error(), options.output.json);
  }
  auto const code = exit_code(diagnosis.cpu ? Outcome::pass : Outcome::environment_error);
  auto const text = options.output.json
                        ? as_json(diagnosis, code).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"
                        : as_text(diagnosis, console.colour);
  auto const printed = print_result(console, text);
  return code != 0 ? code : printed;
}

void setup_doctor(CLI::App& app, Action& action) {
  auto options = std::make_shared<DoctorOptions>();
  auto* const command = add_command(app, "doctor", "Say what this machine has, what is missing, and what to do");
  add_workspace(*command, options->workspace);
  add_device_flags(*command, options->judge);
  add_timeout_flag(*command, options->judge.timeout);
  add_output_flags(*command, options->output);
  command->callback(
      [options, &action] { action = [options](Console& console) { return run_doctor(*options, console); }; });
}

}  // namespace cuda_agent::cli
