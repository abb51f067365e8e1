#include "judge/machine.hpp"

#include <spdlog/fmt/fmt.h>

#include "device/cpu/cpu_backend.hpp"
#include "device/cuda/cuda_backend.hpp"

namespace cuda_agent::judge {
namespace {

/// What has no meaning on a processor is refused there, whoever chose it.
Result<void> only_for_gpus(const Options& options) {
  if (options.gpu_memory > 0) {
    return fail(Outcome::usage_error,
                "--gpu-memory limits what a candidate holds of a GPU, and this ask is judged on the CPU",
                {"leave it out, or judge on a GPU with --device cuda"});
  }
  if (options.precision == PrecisionRule::tf32) {
    return fail(Outcome::usage_error, "--precision tf32 is for GPUs: a processor has no TF32",
                {"leave it out, or say --precision any"});
  }
  return {};
}

Result<void> choose_device(const Options& options, Supply& supply, Machine& machine, util::Deadline deadline) {
  if (!options.gpu.empty() && options.device == Device::cpu) {
    return fail(Outcome::usage_error, "--gpu names a GPU, and --device cpu uses none", {"leave one of the two out"});
  }
  build::Interpreter const& interpreter = machine.interpreter;
  bool const asked = options.device == Device::cuda || !options.architecture.empty() || !options.gpu.empty();
  bool const automatic = options.device == Device::automatic && !asked;
  if (options.stage == Stage::compile && options.device != Device::cpu && options.gpu.empty()) {
    machine.gpu_architecture = device::capability_without_cuda();
  }
  bool const known = !machine.gpu_architecture.empty();
  bool const there = options.device != Device::cpu && (known || device::cuda_is_there());
  if (asked && options.stage != Stage::compile && interpreter.torch_cuda.empty()) {
    return fail(Outcome::environment_error,
                fmt::format("torch {} of {} was built without CUDA", interpreter.torch_version,
                            interpreter.executable.string()),
                {"install a torch with CUDA, or name an interpreter that has one: --python PATH",
                 "judge on the CPU with --device cpu"});
  }
  bool const cuda = asked || (automatic && there && !interpreter.torch_cuda.empty() &&
                              build::find_toolchain(true, deadline).has_value());
  machine.target = cuda ? build::Target::cuda : build::Target::cpu;
  if (!cuda) {
    if (auto sensible = only_for_gpus(options); !sensible) return sensible;
  }
  // To compile for a GPU none needs to be there, when the architecture is given or known.
  if (!cuda || ((known || !there) && options.stage == Stage::compile)) {
    machine.backend = device::make_cpu_backend();
    return {};
  }
  auto backend = supply.gpu(options.gpu);
  if (!backend) return fail(backend.error());
  machine.backend = std::move(*backend);
  machine.gpu_architecture = machine.backend->architecture();
  return {};
}

}  // namespace

Result<Machine> find_machine(const Options& options, Supply& supply, util::Deadline deadline) {
  Machine machine;
  auto interpreter = build::find_interpreter(options.python, deadline);
  if (!interpreter) return fail(interpreter.error());
  machine.interpreter = std::move(*interpreter);
  if (auto chosen = choose_device(options, supply, machine, deadline); !chosen) return fail(chosen.error());
  auto toolchain = build::find_toolchain(machine.target == build::Target::cuda, deadline);
  if (!toolchain) return fail(toolchain.error());
  machine.toolchain = std::move(*toolchain);
  return machine;
}

std::map<std::string, std::string> facts_of(const Machine& machine, Stage stage) {
  std::map<std::string, std::string> facts;
  if (stage != Stage::compile) facts = machine.backend->facts();
  facts["python"] = machine.interpreter.python_version;
  facts["python.executable"] = machine.interpreter.executable.string();
  facts["torch"] = machine.interpreter.torch_version;
  facts["torch.cuda"] = machine.interpreter.torch_cuda;
  facts["compiler"] = machine.toolchain.host.identity;
  if (machine.toolchain.nvcc) facts["nvcc"] = machine.toolchain.nvcc->version;
  return facts;
}

}  // namespace cuda_agent::judge
