#include "device/cuda/cuda_backend.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <future>
#include <system_error>
#include <utility>

#include <dlfcn.h>
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>

#include "device/cuda/compare_on_gpu.hpp"
#include "device/cuda/cuda_arena.hpp"
#include "device/cuda/driver.hpp"
#include "device/cuda/gpu.hpp"
#include "device/cuda/kernels.hpp"
#include "device/cuda/nvml.hpp"
#include "device/cuda/timed_call.hpp"
#include "util/environment.hpp"
#include "util/fd.hpp"

namespace cuda_agent::device {
namespace {

namespace fs = std::filesystem;

/// The folder of libcuda.so.1, for workers whose loader would not find it: some containers mount it elsewhere.
std::string driver_folder() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return {};
  Dl_info place{};
  void* const init = ::dlsym(library, "cuInit");
  bool const known = init != nullptr && ::dladdr(init, &place) != 0 && place.dli_fname != nullptr;
  ::dlclose(library);
  return known ? fs::path(place.dli_fname).parent_path().string() : std::string();
}

/// The nodes that every CUDA program opens, and that of the one GPU; of all GPUs where its number is not known.
std::vector<fs::path> device_nodes(std::optional<int> minor) {
  std::vector<fs::path> nodes;
  std::error_code error;
  // nvidia-caps: where a GPU is divided (MIG), what opens its instances.
  for (const char* const name : {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia-caps"}) {
    if (fs::path const node = fs::path("/dev") / name; fs::exists(node, error)) nodes.push_back(node);
  }
  if (minor) {
    nodes.push_back(fmt::format("/dev/nvidia{}", *minor));
    if (fs::exists(nodes.back(), error)) return nodes;
    nodes.pop_back();
  }
  for (fs::directory_iterator it("/dev", error), end; !error && it != end; it.increment(error)) {
    std::string const name = it->path().filename().string();
    constexpr std::string_view prefix = "nvidia";
    if (name.starts_with(prefix) && name.size() > prefix.size() &&
        std::isdigit(static_cast<unsigned char>(name[prefix.size()])) != 0) {
      nodes.push_back(it->path());
    }
  }
  return nodes;
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(std::unique_ptr<Gpu> gpu)
      : m_gpu(std::move(gpu)),
        m_state(read_gpu_state(m_gpu->uuid())),
        m_awake(std::async(std::launch::async, wake_up, m_state.minor)) {}

  std::string name() const override { return "cuda"; }
  std::string mode(CallMode mode) const override { return mode == CallMode::gated ? "gated" : "end_to_end"; }
  std::string architecture() const override {
    return fmt::format("{}.{}", m_gpu->properties().major, m_gpu->properties().minor);
  }
  Result<void> open() override { return m_gpu->start(); }
  int open_calls() const override { return 3; }
  std::string lock_name() const override { return name_of_device(); }

  WorkerNeeds worker_needs() const override {
    WorkerNeeds needs;
    needs.device_nodes = device_nodes(m_state.minor);
    needs.environment["CUDA_VISIBLE_DEVICES"] = name_of_device();
    // Models with many launches can be enqueued whole behind the gate.
    needs.environment["CUDA_SCALE_LAUNCH_QUEUES"] = "4x";
    // Each stream has a hardware channel of its own: the reference chooses among them.
    needs.environment["CUDA_DEVICE_MAX_CONNECTIONS"] = "32";
    if (auto const folder = driver_folder(); !folder.empty() && !folder.starts_with("/usr/lib"))
      needs.environment["LD_LIBRARY_PATH"] = folder;
    return needs;
  }

  Result<std::unique_ptr<Arena>> make_control() override {
    auto page = ControlArena::make();
    if (!page) return fail(page.error());
    return std::unique_ptr<Arena>(std::move(*page));
  }

  Result<std::unique_ptr<Arena>> allocate(std::uint64_t bytes) override {
    auto arena = CudaArena::lendable(m_gpu->ordinal(), bytes);
    if (!arena) return fail(arena.error());
    return std::unique_ptr<Arena>(std::move(*arena));
  }

  Result<std::unique_ptr<Arena>> allocate_private(std::uint64_t bytes) override {
    auto arena = CudaArena::unshared(bytes);
    if (!arena) return fail(arena.error());
    return std::unique_ptr<Arena>(std::move(*arena));
  }

  Result<void> copy(const Copy& copy) override {
    constexpr const char* copying = "copying tensors";
    auto const from = address_of(copy.from);
    auto const to = address_of(copy.to);
    if (!from) return fail(from.error());
    if (!to) return fail(to.error());
    if (copy.from.bytes != copy.to.bytes) {
      return fail(Outcome::internal_error, "a copy between spans of different size");
    }
    if (copy.from.bytes == 0) return {};
    auto const status = cudaMemcpyAsync(*to, *from, copy.from.bytes, cudaMemcpyDeviceToDevice, m_gpu->stream());
    if (auto done = checked(status, copying); !done) return done;
    return m_gpu->synchronize(copying);
  }

  std::optional<std::uint64_t> free_memory() const override {
    std::size_t free = 0;
    std::size_t all = 0;
    if (cudaMemGetInfo(&free, &all) != cudaSuccess) return std::nullopt;
    return free;
  }

  std::uint64_t memory_for_calls() const override {
    return std::min<std::uint64_t>(std::uint64_t{2} << 30, m_gpu->properties().totalGlobalMem / 32);
  }

  Result<void> still_works() override {
    constexpr const char* trying = "looking whether it still works";
    if (auto flushed = m_gpu->flush_cache(1); !flushed) return flushed;
    return m_gpu->synchronize(trying);
  }

  Result<bool> equal(const Span& a, const Span& b) override {
    constexpr const char* comparing_inputs = "comparing inputs";
    auto const left = address_of(a);
    auto const right = address_of(b);
    if (!left) return fail(left.error());
    if (!right) return fail(right.error());
    if (a.bytes != b.bytes) return false;
    if (a.bytes == 0) return true;
    auto* const differ = static_cast<int*>(m_gpu->report());
    auto done = checked(cudaMemsetAsync(differ, 0, sizeof *differ, m_gpu->stream()), comparing_inputs);
    if (done)
      done = checked(kernels::find_difference(*left, *right, a.bytes, differ, m_gpu->stream()), comparing_inputs);
    auto* const answer = reinterpret_cast<int*>(m_gpu->pinned());
    if (done) {
      done = checked(cudaMemcpyAsync(answer, differ, sizeof *differ, cudaMemcpyDeviceToHost, m_gpu->stream()),
                     comparing_inputs);
    }
    if (done) done = m_gpu->synchronize(comparing_inputs);
    if (!done) return fail(done.error());
    return *answer == 0;
  }

  Result<CompareResult> compare(const Span& expected, const TensorLayout& expected_layout, const Span& got,
                                const TensorLayout& got_layout, const CompareOptions& options) override {
    auto const left = address_of(expected);
    auto const right = address_of(got);
    if (!left) return fail(left.error());
    if (!right) return fail(right.error());
    return compare_on_gpu(*m_gpu, {*left, expected.bytes}, expected_layout, {*right, got.bytes}, got_layout, options);
  }

  Result<CallResult> call(Peer& peer, const TimedCall& call) override { return timed_call(*m_gpu, peer, call); }

  std::map<std::string, std::string> facts() const override {
    auto facts = read_gpu_state(m_gpu->uuid()).facts;
    if (m_state.name.empty()) facts["device.nvml"] = "not there: clocks, temperature and other programs are not known";
    auto const& properties = m_gpu->properties();
    facts["device.kind"] = "cuda";
    facts["device.name"] = properties.name;
    facts["device.uuid"] = name_of_device();
    facts["device.capability"] = architecture();
    facts["device.multiprocessors"] = std::to_string(properties.multiProcessorCount);
    facts["device.memory"] = std::to_string(properties.totalGlobalMem);
    facts["device.l2_cache"] = std::to_string(properties.l2CacheSize);
    int version = 0;
    if (cudaDriverGetVersion(&version) == cudaSuccess) {
      facts["device.cuda"] = fmt::format("{}.{}", version / 1000, version % 1000 / 10);
    }
    return facts;
  }

 private:
  std::string name_of_device() const { return m_state.name.empty() ? m_gpu->uuid() : m_state.name; }

  /// A GPU that nobody has open is put to sleep where persistence mode is off, and takes more than a second to wake up:
  /// better while the workers import torch than under the lock. It stays awake as long as its node is open.
  static util::Fd wake_up(std::optional<int> minor) {
    if (!minor) return {};
    return util::Fd(::open(fmt::format("/dev/nvidia{}", *minor).c_str(), O_RDWR | O_CLOEXEC));
  }

  std::unique_ptr<Gpu> m_gpu;
  GpuState m_state;
  std::future<util::Fd> m_awake;
};

}  // namespace

bool cuda_is_there() {
  int count = 0;
  bool const there = cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
  (void)cudaGetLastError();
  return there;
}

std::string capability_without_cuda() {
  return util::get_env("CUDA_VISIBLE_DEVICES") ? std::string() : common_capability();
}

Result<std::unique_ptr<Backend>> make_cuda_backend(const std::string& gpu) {
  auto opened = Gpu::find(gpu);
  if (!opened) return fail(opened.error());
  if (auto const calls = driver(); !calls) return fail(calls.error());
  return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(std::move(*opened)));
}

}  // namespace cuda_agent::device
