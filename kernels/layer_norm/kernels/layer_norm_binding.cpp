// layer_norm(x, weight, bias, eps) over the last dimension of a contiguous float32 tensor; weight and bias [columns].
#include <cstdint>
#include <limits>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include "../binding_registry.h"

extern "C" cudaError_t layer_norm_launch(float* out, const float* x, const float* weight, const float* bias,
                                         std::int64_t rows, std::int64_t columns, float eps, cudaStream_t stream);

static torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                                double eps) {
  TORCH_CHECK(x.is_cuda() && weight.is_cuda() && bias.is_cuda(), "layer_norm: x, weight and bias must be on the GPU");
  TORCH_CHECK(x.dim() >= 1 && weight.dim() == 1 && weight.size(0) == x.size(-1) && bias.sizes() == weight.sizes(),
              "layer_norm: x is ", x.sizes(), ", weight is ", weight.sizes(), " and bias is ", bias.sizes(),
              "; weight and bias must be as long as the last dimension of x");
  TORCH_CHECK(x.is_contiguous() && weight.is_contiguous() && bias.is_contiguous(),
              "layer_norm: x, weight and bias must be contiguous");
  const std::int64_t columns = x.size(-1);
  const std::int64_t rows = columns > 0 ? x.numel() / columns : 0;
  TORCH_CHECK(rows <= std::numeric_limits<int>::max(), "layer_norm: too many rows");
  torch::Tensor out = torch::empty_like(x);
  C10_CUDA_CHECK(layer_norm_launch(out.data_ptr<float>(), x.data_ptr<float>(), weight.data_ptr<float>(),
                                   bias.data_ptr<float>(), rows, columns, static_cast<float>(eps),
                                   c10::cuda::getCurrentCUDAStream()));
  return out;
}

static void bind_layer_norm(pybind11::module& m) {
  m.def("layer_norm", &layer_norm, pybind11::arg("x"), pybind11::arg("weight"), pybind11::arg("bias"),
        pybind11::arg("eps"));
}

REGISTER_BINDING(layer_norm, bind_layer_norm);
