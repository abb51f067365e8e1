// Which GPUs the driver shows, without linking against it.
#pragma once

#include <string>
#include <vector>

namespace cuda_agent::cli {

struct GpuProbe {
  bool driver = false;            ///< libcuda.so.1 was found and answered
  std::string driver_version;     ///< the newest CUDA that it runs, "13.0"
  std::vector<std::string> gpus;  ///< "NVIDIA H200 (sm_90)"
  std::string problem;            ///< one sentence when there is no driver or no GPU
};

GpuProbe probe_gpus();

}  // namespace cuda_agent::cli
