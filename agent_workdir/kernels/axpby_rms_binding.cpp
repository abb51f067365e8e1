// axpby_rms(a, b, alpha) -> [rows]: root mean square of alpha * a + b over the last dimension of [rows, columns].
#include <cstdint>

#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include "../binding_registry.h"

#ifdef CUDA_AGENT_CUDA
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

extern "C" cudaError_t axpby_rms_launch(float* out, const float* a, const float* b, float alpha, std::int64_t rows,
                                        std::int64_t columns, cudaStream_t stream);
#else
#include <ATen/Parallel.h>

extern "C" void axpby_rms_run(float* out, const float* a, const float* b, float alpha, std::int64_t rows,
                              std::int64_t columns);
#endif

static torch::Tensor axpby_rms(const torch::Tensor& a, const torch::Tensor& b, double alpha) {
  TORCH_CHECK(a.dim() == 2 && a.sizes() == b.sizes(), "axpby_rms: a is ", a.sizes(), " and b is ", b.sizes(),
              "; both must be [rows, columns]");
  TORCH_CHECK(a.is_contiguous() && b.is_contiguous(), "axpby_rms: a and b must be contiguous");
  const std::int64_t rows = a.size(0);
  const std::int64_t columns = a.size(1);
  torch::Tensor out = torch::empty({rows}, a.options());
  float* to = out.data_ptr<float>();
  const float* from_a = a.data_ptr<float>();
  const float* from_b = b.data_ptr<float>();
  const auto factor = static_cast<float>(alpha);
#ifdef CUDA_AGENT_CUDA
  C10_CUDA_CHECK(axpby_rms_launch(to, from_a, from_b, factor, rows, columns, c10::cuda::getCurrentCUDAStream()));
#else
  at::parallel_for(0, rows, 4, [=](std::int64_t begin, std::int64_t end) {
    axpby_rms_run(to + begin, from_a + begin * columns, from_b + begin * columns, factor, end - begin, columns);
  });
#endif
  return out;
}

static void bind_axpby_rms(pybind11::module& m) {
  m.def("axpby_rms", &axpby_rms, pybind11::arg("a"), pybind11::arg("b"), pybind11::arg("alpha"));
}

REGISTER_BINDING(axpby_rms, bind_axpby_rms);
