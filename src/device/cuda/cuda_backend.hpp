// The judge's device on an NVIDIA GPU. Also in programs that were built without CUDA, where it only says so.
#pragma once

#include <memory>
#include <string>

#include "device/backend.hpp"

namespace cuda_agent::device {

/// `gpu`: an index among the visible devices or a UUID; empty for the first. Errors (environment_error): no driver, no
/// such GPU, one that cannot lend memory by descriptor, or a program that was built without CUDA.
Result<std::unique_ptr<Backend>> make_cuda_backend(const std::string& gpu);

/// Whether make_cuda_backend could find a GPU: this program has its CUDA side and the driver shows one.
bool cuda_is_there();

/// The compute capability ("9.0") of whatever GPU the first one is, told without CUDA, whose start takes a tenth of a
/// second. Empty where only CUDA can tell: GPUs that differ or are hidden by CUDA_VISIBLE_DEVICES, no NVML.
std::string capability_without_cuda();

}  // namespace cuda_agent::device
