// axpby(a, b, alpha) -> alpha * a + b for contiguous float32 tensors of one shape.
#include <cstdint>

#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include "../binding_registry.h"

#ifdef CUDA_AGENT_CUDA
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

extern "C" cudaError_t axpby_launch(float* out, const float* a, const float* b, float alpha, std::int64_t count,
                                    cudaStream_t stream);
#else
#include <ATen/Parallel.h>

extern "C" void axpby_run(float* out, const float* a, const float* b, float alpha, std::int64_t count);
#endif

static torch::Tensor axpby(const torch::Tensor& a, const torch::Tensor& b, double alpha) {
  TORCH_CHECK(a.sizes() == b.sizes(), "axpby: a is ", a.sizes(), " and b is ", b.sizes(), "; they must be alike");
  TORCH_CHECK(a.is_contiguous() && b.is_contiguous(), "axpby: a and b must be contiguous");
  torch::Tensor out = torch::empty_like(a);
  float* to = out.data_ptr<float>();
  const float* from_a = a.data_ptr<float>();
  const float* from_b = b.data_ptr<float>();
  const auto factor = static_cast<float>(alpha);
#ifdef CUDA_AGENT_CUDA
  C10_CUDA_CHECK(axpby_launch(to, from_a, from_b, factor, a.numel(), c10::cuda::getCurrentCUDAStream()));
#else
  at::parallel_for(0, a.numel(), 1 << 15, [=](std::int64_t begin, std::int64_t end) {
    axpby_run(to + begin, from_a + begin, from_b + begin, factor, end - begin);
  });
#endif
  return out;
}

static void bind_axpby(pybind11::module& m) {
  m.def("axpby", &axpby, pybind11::arg("a"), pybind11::arg("b"), pybind11::arg("alpha"));
}

REGISTER_BINDING(axpby, bind_axpby);
