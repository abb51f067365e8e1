// CUDA calls as Results, and the driver calls that the runtime does not wrap, found at run time: the program must also
// start where there is no driver.
#pragma once

#include <string_view>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "cuda_agent/error.hpp"

namespace cuda_agent::device {

/// The error of a runtime call. `doing` completes "the GPU failed while …".
Result<void> checked(cudaError_t status, std::string_view doing);
Result<void> checked(CUresult status, std::string_view doing);

struct Driver {
  decltype(&cuMemCreate) mem_create = nullptr;
  decltype(&cuMemRelease) mem_release = nullptr;
  decltype(&cuMemExportToShareableHandle) mem_export = nullptr;
  decltype(&cuMemAddressReserve) address_reserve = nullptr;
  decltype(&cuMemAddressFree) address_free = nullptr;
  decltype(&cuMemMap) mem_map = nullptr;
  decltype(&cuMemUnmap) mem_unmap = nullptr;
  decltype(&cuMemSetAccess) mem_set_access = nullptr;
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
};

/// Found once. Errors: environment_error, when the driver is too old for one of them.
Result<const Driver*> driver();

}  // namespace cuda_agent::device
