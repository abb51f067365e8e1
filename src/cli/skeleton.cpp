#include "cli/skeleton.hpp"

#include <cctype>

namespace cuda_agent::cli {

namespace {

constexpr std::string_view k_cuda =
    R"(// @name@ on the GPU: out[i] = x[i]. Begin here: make it compute what Model's forward (model.py) does.
#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) @name@_kernel(float* out, const float* x, std::int64_t count) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count; i += stride) {
    out[i] = x[i];
  }
}

}  // namespace

/// Returns what the launch returned. `stream` is the one to launch on.
extern "C" cudaError_t @name@_launch(float* out, const float* x, std::int64_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(std::min<std::int64_t>((count + kThreads - 1) / kThreads, 1 << 20));
  @name@_kernel<<<blocks, kThreads, 0, stream>>>(out, x, count);
  return cudaGetLastError();
}
)";

constexpr std::string_view k_cpu = R"(// @name@ on the CPU, the twin of @name@.cu: out[i] = x[i].
#include <cstdint>

extern "C" void @name@_run(float* __restrict__ out, const float* __restrict__ x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = x[i];
}
)";

constexpr std::string_view k_binding = R"(// @name@_forward(x) for a contiguous float32 tensor: what model_new.py calls.
#include <cstdint>

#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include "../binding_registry.h"

#ifdef CUDA_AGENT_CUDA
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

extern "C" cudaError_t @name@_launch(float* out, const float* x, std::int64_t count, cudaStream_t stream);
#else
#include <ATen/Parallel.h>

extern "C" void @name@_run(float* out, const float* x, std::int64_t count);
#endif

static torch::Tensor @name@_forward(const torch::Tensor& x) {
  TORCH_CHECK(x.is_contiguous(), "@name@_forward: x must be contiguous");
  torch::Tensor out = torch::empty_like(x);
  float* to = out.data_ptr<float>();
  const float* from = x.data_ptr<float>();
#ifdef CUDA_AGENT_CUDA
  C10_CUDA_CHECK(@name@_launch(to, from, x.numel(), c10::cuda::getCurrentCUDAStream()));
#else
  at::parallel_for(0, x.numel(), 1 << 15, [=](std::int64_t begin, std::int64_t end) {
    @name@_run(to + begin, from + begin, end - begin);
  });
#endif
  return out;
}

static void bind_@name@(pybind11::module& m) { m.def("@name@_forward", &@name@_forward, pybind11::arg("x")); }

REGISTER_BINDING(@name@, bind_@name@);
)";

std::string filled(std::string_view text, const std::string& name) {
  constexpr std::string_view place = "@name@";
  std::string result;
  std::size_t done = 0;
  for (std::size_t at = 0; (at = text.find(place, done)) != std::string_view::npos; done = at + place.size()) {
    result.append(text.substr(done, at - done)).append(name);
  }
  return result.append(text.substr(done));
}

}  // namespace

std::string kernel_name(std::string_view stem) {
  std::string name;
  for (auto const letter : stem) {
    auto const byte = static_cast<unsigned char>(letter);
    auto const fits = byte < 0x80 && std::isalnum(byte) != 0;
    if (fits) name += static_cast<char>(std::tolower(byte));
    if (!fits && !name.empty() && name.back() != '_') name += '_';
  }
  name.erase(0, name.find_first_not_of("0123456789_"));
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.size() > 48) name.resize(48);
  return name.empty() || name == "model" ? "model_op" : name;
}

std::map<std::string, std::string> kernel_skeleton(const std::string& name) {
  return {{"kernels/" + name + ".cu", filled(k_cuda, name)},
          {"kernels/" + name + "_cpu.cpp", filled(k_cpu, name)},
          {"kernels/" + name + "_binding.cpp", filled(k_binding, name)}};
}

}  // namespace cuda_agent::cli
