#include "device/cuda/driver.hpp"

#include <string>

#include <spdlog/fmt/fmt.h>

namespace cuda_agent::device {
namespace {

constexpr unsigned oldest_driver = 12000;  // CUDA version; none of these calls has changed since

tl::unexpected<Error> failed(std::string_view doing, std::string_view why, bool memory, bool broken) {
  // What the driver says of a GPU that has failed. Not what happened to one process: every context has ended.
  if (broken) {
    return fail(
        Outcome::environment_error, fmt::format("the GPU itself has failed while {}: {}", doing, why),
        {"judge on another GPU (--gpu) until this one was reset: nvidia-smi -q and the kernel's log (Xid) say more"});
  }
  if (memory) {
    return fail(Outcome::environment_error, fmt::format("the GPU has too little free memory for {}", doing),
                {"end other programs on this GPU, or judge a task with smaller inputs"});
  }
  return fail(Outcome::environment_error, fmt::format("the GPU failed while {}: {}", doing, why),
              {"`cuda-agent doctor` shows what this machine lacks; `nvidia-smi` shows the GPU's state"});
}

/// The runtime's codes for these are the driver's.
bool is_broken(cudaError_t status) {
  return status == cudaErrorECCUncorrectable || status == cudaErrorNvlinkUncorrectable || status == cudaErrorContained;
}

template <typename Call>
bool find(Call& call, const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  auto const status = cudaGetDriverEntryPointByVersion(name, &entry, oldest_driver, cudaEnableDefault, &found);
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess || entry == nullptr) return false;
  call = reinterpret_cast<Call>(entry);
  return true;
}

Result<Driver> find_all() {
  Driver d;
  bool const all = find(d.mem_create, "cuMemCreate") && find(d.mem_release, "cuMemRelease") &&
                   find(d.mem_export, "cuMemExportToShareableHandle") &&
                   find(d.address_reserve, "cuMemAddressReserve") && find(d.address_free, "cuMemAddressFree") &&
                   find(d.mem_map, "cuMemMap") && find(d.mem_unmap, "cuMemUnmap") &&
                   find(d.mem_set_access, "cuMemSetAccess") && find(d.granularity, "cuMemGetAllocationGranularity");
  if (all) return d;
  return fail(Outcome::environment_error, "the NVIDIA driver is too old: it cannot lend memory to other processes",
              {"install a driver for CUDA 12 or newer", "judge on the CPU with --device cpu"});
}

}  // namespace

Result<void> checked(cudaError_t status, std::string_view doing) {
  if (status == cudaSuccess) return {};
  (void)cudaGetLastError();
  return failed(doing, fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status)),
                status == cudaErrorMemoryAllocation, is_broken(status));
}

Result<void> checked(CUresult status, std::string_view doing) {
  if (status == CUDA_SUCCESS) return {};
  return failed(doing, fmt::format("driver error {}", static_cast<int>(status)), status == CUDA_ERROR_OUT_OF_MEMORY,
                is_broken(static_cast<cudaError_t>(status)));
}

Result<const Driver*> driver() {
  static Result<Driver> const found = find_all();
  if (!found) return fail(found.error());
  return &*found;
}

}  // namespace cuda_agent::device
