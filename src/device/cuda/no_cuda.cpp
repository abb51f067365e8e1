// Stands in for the CUDA side where the program is built without nvcc.
#include "device/cuda/cuda_backend.hpp"

namespace cuda_agent::device {

bool cuda_is_there() { return false; }

std::string capability_without_cuda() { return {}; }

Result<std::unique_ptr<Backend>> make_cuda_backend(const std::string& /*gpu*/) {
  return fail(Outcome::environment_error, "this cuda-agent was built without its CUDA side: nvcc was not found then",
              {"install the CUDA Toolkit (or set CUDA_HOME) and build again: scripts/setup.sh",
               "judge on the CPU with --device cpu"});
}

}  // namespace cuda_agent::device
