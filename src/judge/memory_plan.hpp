// What an ask takes of a GPU's memory: known once the task's own model has run, refused before anything is loaded that
// would not fit.
#pragma once

#include <cstdint>
#include <string>

#include "cuda_agent/error.hpp"

namespace cuda_agent::judge {

/// All in bytes.
struct MemoryFacts {
  std::uint64_t inputs = 0;   ///< of one call
  std::uint64_t results = 0;  ///< room for those of one call
  std::uint64_t model =
      0;  ///< most that the reference's worker had in use beside the inputs: weights, what lies between
  std::uint64_t free = 0;  ///< of the device, now
  int baselines = 1;       ///< arms whose results are kept, the candidate's aside
  bool timed = false;
};

struct MemoryPlan {
  std::uint64_t taken = 0;  ///< by the supervisor and the reference's worker already
  std::uint64_t still = 0;  ///< what the candidate's worker, and keeping its and other results, will take
  std::uint64_t probe = 0;  ///< and the look at other inputs and at the precision, last
  bool probe_fits = true;   ///< false: it is left out

  std::uint64_t whole() const { return taken + still + (probe_fits ? probe : 0); }
};

/// Taken: the inputs drawn, kept out of reach and lent to the reference (3 ×), its results lent and kept, its model.
/// Still: inputs and results lent to the candidate, its results and those of further baselines and of the empty call
/// kept, a model as large as the reference's. Probe: the inputs once more while their signs are drawn; inputs and model
/// in float64 and the results cut to single precision.
MemoryPlan plan_memory(const MemoryFacts& facts);

/// Errors: environment_error that names what is needed, what is free and what takes it.
Result<void> check_memory(const MemoryFacts& facts);

/// "12.3 GB", "512 MB"
std::string in_words(std::uint64_t bytes);

}  // namespace cuda_agent::judge
