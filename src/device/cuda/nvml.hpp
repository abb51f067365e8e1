// What the driver's management library tells about a GPU. It is found at run time and may be missing (containers).
#pragma once

#include <map>
#include <optional>
#include <string>

namespace cuda_agent::device {

struct GpuState {
  std::string name;                          ///< "GPU-…", or "MIG-…" for an instance; empty: NVML does not know it
  std::map<std::string, std::string> facts;  ///< "device.driver", "device.clock_sm_mhz", "device.temperature_c", …
  std::optional<int> minor;                  ///< N of /dev/nvidiaN
};

/// `uuid` as nvidia-smi prints it. Facts that cannot be read are left out.
GpuState read_gpu_state(const std::string& uuid);

/// The compute capability ("9.0") of all GPUs of this machine; empty where they differ or it cannot be told.
std::string common_capability();

}  // namespace cuda_agent::device
