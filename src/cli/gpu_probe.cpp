#include "cli/gpu_probe.hpp"

#include <array>
#include <cstddef>
#include <memory>

#include <dlfcn.h>
#include <spdlog/fmt/fmt.h>

#include "util/text.hpp"

namespace cuda_agent::cli {

namespace {

// The few driver calls that are needed, declared here: the driver's header belongs to the CUDA Toolkit, which the
// command must do without. CUresult and CUdevice are ints; 0 is success.
using InitCall = int(unsigned flags);
using VersionCall = int(int* version);
using CountCall = int(int* count);
using DeviceCall = int(int* device, int ordinal);
using NameCall = int(char* name, int length, int device);
using AttributeCall = int(int* value, int attribute, int device);

constexpr int k_capability_major = 75;
constexpr int k_capability_minor = 76;
constexpr int k_no_device = 100;

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};

template <typename Call>
Call* find(void* library, const char* name) {
  return reinterpret_cast<Call*>(::dlsym(library, name));
}

std::string describe(void* library, int ordinal) {
  auto* const get = find<DeviceCall>(library, "cuDeviceGet");
  auto* const get_name = find<NameCall>(library, "cuDeviceGetName");
  auto* const get_attribute = find<AttributeCall>(library, "cuDeviceGetAttribute");
  int device = 0;
  std::array<char, 256> name{};
  int major = 0;
  int minor = 0;
  if (get == nullptr || get_name == nullptr || get_attribute == nullptr || get(&device, ordinal) != 0) {
    return fmt::format("GPU {}", ordinal);
  }
  get_name(name.data(), static_cast<int>(name.size()) - 1, device);
  get_attribute(&major, k_capability_major, device);
  get_attribute(&minor, k_capability_minor, device);
  return fmt::format("{} (sm_{}{})", util::escape_untrusted(name.data(), 256), major, minor);
}

}  // namespace

GpuProbe probe_gpus() {
  GpuProbe probe;
  std::unique_ptr<void, CloseLibrary> library(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL));
  if (!library) {
    probe.problem = "no NVIDIA driver (libcuda.so.1) on this machine";
    return probe;
  }
  auto* const init = find<InitCall>(library.get(), "cuInit");
  auto* const get_version = find<VersionCall>(library.get(), "cuDriverGetVersion");
  auto* const get_count = find<CountCall>(library.get(), "cuDeviceGetCount");
  if (init == nullptr || get_version == nullptr || get_count == nullptr) {
    probe.problem = "libcuda.so.1 is no NVIDIA driver: it lacks cuInit";
    return probe;
  }
  auto const status = init(0);
  int count = 0;
  if (status != 0 || get_count(&count) != 0 || count == 0) {
    probe.problem = status == 0 || status == k_no_device
                        ? std::string("the NVIDIA driver shows no GPU")
                        : fmt::format("the NVIDIA driver does not start (cuInit gave {})", status);
    return probe;
  }
  probe.driver = true;
  int version = 0;
  if (get_version(&version) == 0) probe.driver_version = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  probe.gpus.reserve(static_cast<std::size_t>(count));
  for (int ordinal = 0; ordinal < count; ++ordinal) probe.gpus.push_back(describe(library.get(), ordinal));
  // The driver starts threads of its own and does not like to be unloaded.
  (void)library.release();
  return probe;
}

}  // namespace cuda_agent::cli
