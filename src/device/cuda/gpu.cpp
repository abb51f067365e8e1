#include "device/cuda/gpu.hpp"

#include <algorithm>
#include <string_view>

#include <spdlog/fmt/fmt.h>

#include "device/cuda/driver.hpp"
#include "device/cuda/kernels.hpp"

namespace cuda_agent::device {
namespace {

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

tl::unexpected<Error> no_gpu(std::string why) {
  return fail(Outcome::environment_error, std::move(why),
              {"judge on the CPU with --device cpu", "`cuda-agent doctor` shows what this machine lacks"});
}

Result<int> visible_gpus() {
  int count = 0;
  auto const status = cudaGetDeviceCount(&count);
  (void)cudaGetLastError();
  if (status == cudaErrorInsufficientDriver) return no_gpu("there is no NVIDIA driver here, or one older than CUDA 13");
  if (status != cudaSuccess || count == 0) {
    return no_gpu(fmt::format("the NVIDIA driver shows no GPU ({})", cudaGetErrorName(status)));
  }
  return count;
}

Result<int> find_gpu(const std::string& asked) {
  auto const count = visible_gpus();
  if (!count) return fail(count.error());
  if (asked.empty()) return 0;
  std::string known;
  for (int i = 0; i < *count; ++i) {
    cudaDeviceProp properties{};
    if (auto read = checked(cudaGetDeviceProperties(&properties, i), "reading its properties"); !read) {
      return fail(read.error());
    }
    std::string const uuid = uuid_text(properties.uuid);
    // An instance of a divided GPU is named MIG-… elsewhere.
    bool const same = asked.size() >= 8 && (asked.starts_with("GPU-") || asked.starts_with("MIG-")) &&
                      std::string_view(uuid).substr(4).starts_with(std::string_view(asked).substr(4));
    if (asked == std::to_string(i) || same) return i;
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", i, uuid);
  }
  return fail(Outcome::environment_error, fmt::format("no visible GPU is {}; visible: {}", asked, known),
              {"CUDA_VISIBLE_DEVICES decides what is visible; --gpu takes an index among these or a UUID"});
}

}  // namespace

Result<std::unique_ptr<Gpu>> Gpu::find(const std::string& asked) {
  auto const ordinal = find_gpu(asked);
  if (!ordinal) return fail(ordinal.error());
  std::unique_ptr<Gpu> gpu(new Gpu(*ordinal));
  if (auto ready = gpu->look(); !ready) return fail(ready.error());
  return gpu;
}

namespace {
constexpr const char* starting = "starting";
}  // namespace

Result<void> Gpu::look() {
  if (auto done = checked(cudaGetDeviceProperties(&m_properties, m_ordinal), starting); !done) return done;
  int compute_mode = 0;
  (void)cudaDeviceGetAttribute(&compute_mode, cudaDevAttrComputeMode, m_ordinal);
  if (compute_mode != cudaComputeModeDefault) {
    return fail(Outcome::environment_error,
                fmt::format("{} is in exclusive or prohibited compute mode; the judge and its workers share it",
                            m_properties.name),
                {"nvidia-smi -c DEFAULT (as root)"});
  }
  int mps = 0;
  (void)cudaDeviceGetAttribute(&mps, cudaDevAttrMpsEnabled, m_ordinal);
  (void)cudaGetLastError();
  if (mps != 0) {
    return fail(Outcome::environment_error, "CUDA MPS serves this GPU: one client's fault would hit all",
                {"stop it: echo quit | nvidia-cuda-mps-control"});
  }
  return {};
}

Result<void> Gpu::start() {
  if (m_ready) return {};
  m_started = true;
  if (auto done = checked(cudaSetDevice(m_ordinal), starting); !done) return done;
  if (auto done = checked(cudaStreamCreateWithFlags(&m_stream, cudaStreamNonBlocking), starting); !done) return done;
  void* pinned = nullptr;
  if (auto done = checked(cudaMallocHost(&pinned, pinned_bytes), starting); !done) return done;
  m_pinned = static_cast<std::byte*>(pinned);
  if (auto done = checked(cudaMalloc(&m_report, report_bytes), starting); !done) return done;
  m_flush_bytes = 2 * std::max<std::uint64_t>(static_cast<std::uint64_t>(m_properties.l2CacheSize), 1 << 20);
  void* flush = nullptr;
  if (auto done = checked(cudaMalloc(&flush, m_flush_bytes), starting); !done) return done;
  m_flush = static_cast<std::byte*>(flush);
  m_ready = true;
  return {};
}

Gpu::~Gpu() {
  // Without a context any call of the runtime would make one. With one, all that it holds goes with it.
  if (m_started && cudaSetDevice(m_ordinal) == cudaSuccess) (void)cudaDeviceReset();
}

std::string Gpu::uuid() const { return uuid_text(m_properties.uuid); }

Result<void> Gpu::synchronize(const char* doing) const { return checked(cudaStreamSynchronize(m_stream), doing); }

Result<void> Gpu::flush_cache(std::uint64_t seed) const {
  (void)cudaCtxResetPersistingL2Cache();
  return checked(kernels::fill_with_noise(m_flush, m_flush_bytes, seed, m_stream), "flushing its cache");
}

}  // namespace cuda_agent::device
