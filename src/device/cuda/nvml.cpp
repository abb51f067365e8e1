#include "device/cuda/nvml.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <spdlog/fmt/fmt.h>

namespace cuda_agent::device {
namespace {

// The few calls that are needed, declared here: the library's header is not part of every CUDA Toolkit.
using Handle = void*;
constexpr unsigned clock_sm = 1;
constexpr unsigned clock_memory = 2;
constexpr unsigned temperature_of_gpu = 0;

struct CloseLibrary {
  void operator()(void* library) const { ::dlclose(library); }
};

class Nvml {
 public:
  Nvml() : m_library(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (!m_library) return;
    auto* const init = find<int()>("nvmlInit_v2");
    m_running = init != nullptr && init() == 0;
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (!m_running) return;
    if (auto* const shutdown = find<int()>("nvmlShutdown")) (void)shutdown();
  }

  /// What number, bits and processes are asked of from now on.
  bool choose(const std::string& uuid) {
    auto* const by_uuid = m_running ? find<int(const char*, Handle*)>("nvmlDeviceGetHandleByUUID") : nullptr;
    if (by_uuid == nullptr) return false;
    // CUDA does not say whether it counts a whole GPU or an instance of a divided one (MIG).
    for (char const* const kind : {"GPU-", "MIG-"}) {
      std::string const name = kind + uuid.substr(std::min<std::size_t>(4, uuid.size()));
      if (by_uuid(name.c_str(), &m_device) == 0) {
        m_name = name;
        break;
      }
      m_device = nullptr;
    }
    if (m_name.starts_with("MIG-")) find_whole();
    return m_device != nullptr;
  }

  /// Of each GPU, major and minor; empty where one's cannot be told.
  std::vector<std::pair<int, int>> capabilities() const {
    if (!m_running) return {};
    auto* const count_of = find<int(unsigned*)>("nvmlDeviceGetCount_v2");
    auto* const by_index = find<int(unsigned, Handle*)>("nvmlDeviceGetHandleByIndex_v2");
    auto* const capability_of = find<int(Handle, int*, int*)>("nvmlDeviceGetCudaComputeCapability");
    unsigned count = 0;
    if (count_of == nullptr || by_index == nullptr || capability_of == nullptr || count_of(&count) != 0) return {};
    std::vector<std::pair<int, int>> all(count);
    for (unsigned i = 0; i < count; ++i) {
      Handle device = nullptr;
      if (by_index(i, &device) != 0 || capability_of(device, &all[i].first, &all[i].second) != 0) return {};
    }
    return all;
  }

  const std::string& name() const { return m_name; }

  template <typename... Arguments>
  std::optional<unsigned> number(const char* name, Arguments... arguments) const {
    auto* const call = find<int(Handle, Arguments..., unsigned*)>(name);
    unsigned value = 0;
    if (call == nullptr || call(m_device, arguments..., &value) != 0) return std::nullopt;
    return value;
  }

  std::optional<unsigned long long> bits(const char* name) const {
    auto* const call = find<int(Handle, unsigned long long*)>(name);
    unsigned long long value = 0;
    if (call == nullptr || call(m_device, &value) != 0) return std::nullopt;
    return value;
  }

  std::string driver_version() const {
    std::array<char, 96> text{};
    auto* const call = find<int(char*, unsigned)>("nvmlSystemGetDriverVersion");
    if (call == nullptr || call(text.data(), static_cast<unsigned>(text.size()) - 1) != 0) return {};
    return text.data();
  }

  std::optional<unsigned> processes() const {
    auto* const call = find<int(Handle, unsigned*, void*)>("nvmlDeviceGetComputeRunningProcesses_v3");
    unsigned count = 0;
    if (call == nullptr) return std::nullopt;
    int const status = call(m_device, &count, nullptr);  // "insufficient size" (7) tells how many there are
    if (status != 0 && status != 7) return std::nullopt;
    return count;
  }

 private:
  /// Clocks, temperature and the device node are those of the whole GPU.
  void find_whole() {
    auto* const whole = find<int(Handle, Handle*)>("nvmlDeviceGetDeviceHandleFromMigDeviceHandle");
    Handle device = nullptr;
    if (whole != nullptr && whole(m_device, &device) == 0) m_device = device;
  }

  template <typename Call>
  Call* find(const char* name) const {
    return reinterpret_cast<Call*>(::dlsym(m_library.get(), name));
  }

  std::unique_ptr<void, CloseLibrary> m_library;
  bool m_running = false;
  Handle m_device = nullptr;
  std::string m_name;
};

}  // namespace

GpuState read_gpu_state(const std::string& uuid) {
  GpuState state;
  Nvml nvml;
  if (!nvml.choose(uuid)) return state;
  state.name = nvml.name();
  auto const note = [&](const char* key, const auto& value) {
    if (value) state.facts[key] = fmt::format("{}", *value);
  };
  if (auto const version = nvml.driver_version(); !version.empty()) state.facts["device.driver"] = version;
  note("device.clock_sm_mhz", nvml.number("nvmlDeviceGetClockInfo", clock_sm));
  note("device.clock_memory_mhz", nvml.number("nvmlDeviceGetClockInfo", clock_memory));
  note("device.clock_sm_max_mhz", nvml.number("nvmlDeviceGetMaxClockInfo", clock_sm));
  note("device.temperature_c", nvml.number("nvmlDeviceGetTemperature", temperature_of_gpu));
  note("device.power_mw", nvml.number("nvmlDeviceGetPowerUsage"));
  note("device.processes", nvml.processes());
  if (auto const reasons = nvml.bits("nvmlDeviceGetCurrentClocksEventReasons")) {
    state.facts["device.throttle_reasons"] = fmt::format("{:#x}", *reasons);
  }
  if (auto const minor = nvml.number("nvmlDeviceGetMinorNumber")) state.minor = static_cast<int>(*minor);
  return state;
}

std::string common_capability() {
  auto const all = Nvml().capabilities();
  if (all.empty() || std::count(all.begin(), all.end(), all.front()) != std::ssize(all)) return {};
  return fmt::format("{}.{}", all.front().first, all.front().second);
}

}  // namespace cuda_agent::device
