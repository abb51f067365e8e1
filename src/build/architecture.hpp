// The one place that decides which GPU architecture is compiled for. A candidate has no say in it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_agent/error.hpp"

namespace cuda_agent::build {

struct Architecture {
  std::string number;  ///< "90a"
  std::string from;    ///< "--arch", "TORCH_CUDA_ARCH_LIST" or "gpu"

  std::string name() const { return "sm_" + number; }
  /// {"-gencode", "arch=compute_90a,code=sm_90a"}
  std::vector<std::string> nvcc_flags() const;
};

/// Everything the decision may depend on.
struct ArchitectureQuestion {
  std::string requested;                         ///< from --arch; empty = not given
  std::string torch_list;                        ///< TORCH_CUDA_ARCH_LIST; empty = not given
  std::string gpu;                               ///< "9.0" of the GPU that will run it; empty = none here
  std::vector<int> supported;                    ///< numbers that nvcc compiles for, e.g. {75, 80, 90}
  std::string nvcc_version;                      ///< for messages
  std::map<std::string, std::string> variables;  ///< NVCC_PREPEND_FLAGS and NVCC_APPEND_FLAGS, where set
};

/// "9.0", "90", "9.0a", "90a", "sm_90a" and "compute_90a" → "90" or "90a"; none for anything else.
std::optional<std::string> parse_architecture(std::string_view text);

/// --arch decides, else TORCH_CUDA_ARCH_LIST, else the GPU (its own 'a' variant where there is one, from 9.0 on).
/// Errors (environment_error): nothing to decide by, not an architecture, refused by this nvcc, a list without the
/// GPU's architecture, or a flag in an nvcc variable that asks for another one. Each names the flag and who decides.
Result<Architecture> decide_architecture(const ArchitectureQuestion& question);

/// The numbers in the answer of `nvcc --list-gpu-code` ("sm_75\nsm_80\n…").
std::vector<int> parse_supported(std::string_view text);

}  // namespace cuda_agent::build
