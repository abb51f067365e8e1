#include "build/nvcc.hpp"

#include <cstdlib>

#include <spdlog/fmt/fmt.h>

#include "build/architecture.hpp"
#include "build/object_store.hpp"
#include "build/tool_environment.hpp"
#include "exec/child.hpp"
#include "util/files.hpp"
#include "util/hash.hpp"
#include "util/text.hpp"

namespace cuda_agent::build {

std::optional<Error> check_cuda(const Toolchain& toolchain, const Interpreter& interpreter) {
  if (!toolchain.nvcc) {
    return Error(Outcome::environment_error, "no nvcc: CUDA kernels cannot be compiled here",
                 {"Install the CUDA Toolkit (nvcc 12 or 13), or set CUDA_HOME to where it is.",
                  "Or judge the C++ kernels on the CPU: --device cpu."});
  }
  if (interpreter.torch_cuda.empty()) {
    return Error(Outcome::environment_error,
                 fmt::format("{} has torch {}, which was built without CUDA", interpreter.executable.string(),
                             interpreter.torch_version),
                 {"Install a CUDA build of torch for it: python -m pip install torch==2.11.0",
                  "Or judge the C++ kernels on the CPU: --device cpu."});
  }
  if (std::atoi(interpreter.torch_cuda.c_str()) != std::atoi(toolchain.nvcc->version.c_str())) {
    return Error(Outcome::environment_error,
                 fmt::format("nvcc {} ({}) and torch {} (built with CUDA {}) do not fit: the major versions must agree",
                             toolchain.nvcc->version, toolchain.nvcc->executable.string(), interpreter.torch_version,
                             interpreter.torch_cuda),
                 {fmt::format("Set CUDA_HOME to a CUDA Toolkit {}.", interpreter.torch_cuda),
                  "Or name another interpreter with --python PATH."});
  }
  return std::nullopt;
}

Result<std::vector<int>> supported_architectures(const Compiler& nvcc, const Cache& cache, util::Deadline deadline) {
  auto const kept = ObjectStore(cache).place("architectures", util::sha256_hex(nvcc.identity), ".txt");
  if (auto const text = util::read_file(kept, 1 << 16)) {
    if (auto numbers = parse_supported(*text); !numbers.empty()) return numbers;
  }
  exec::Command command;
  command.argv = {nvcc.executable.string(), "--list-gpu-code"};
  command.env = tool_environment({nvcc.executable}, "/tmp");
  auto const answer = exec::run(command, deadline.earlier(util::Deadline::after(std::chrono::seconds(20))));
  if (!answer) return fail(answer.error());
  auto numbers = parse_supported(answer->output);
  if (!answer->status.ok() || numbers.empty()) {
    return fail(Outcome::environment_error,
                fmt::format("{} --list-gpu-code ended with {} and named no architecture", nvcc.executable.string(),
                            answer->status.describe()),
                {"Check that the CUDA Toolkit is whole: nvcc --version"}, util::escape_untrusted(answer->output, 4096));
  }
  if (util::make_folders(kept.parent_path())) {
    [[maybe_unused]] auto const written = util::write_file(kept, answer->output);
  }
  return numbers;
}

}  // namespace cuda_agent::build
