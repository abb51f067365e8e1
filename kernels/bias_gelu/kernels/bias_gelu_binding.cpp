// bias_gelu(x, bias) -> gelu_tanh(x + bias) for contiguous float32 x [..., columns] and bias [columns].
#include <cstdint>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include "../binding_registry.h"

extern "C" cudaError_t bias_gelu_launch(float* out, const float* x, const float* bias, std::int64_t rows,
                                        std::int64_t columns, cudaStream_t stream);

static torch::Tensor bias_gelu(const torch::Tensor& x, const torch::Tensor& bias) {
  TORCH_CHECK(x.is_cuda() && bias.is_cuda(), "bias_gelu: x and bias must be on the GPU");
  TORCH_CHECK(x.dim() >= 1 && bias.dim() == 1 && x.size(-1) == bias.size(0), "bias_gelu: x is ", x.sizes(),
              " and bias is ", bias.sizes(), "; the bias must be as long as the last dimension of x");
  TORCH_CHECK(x.is_contiguous() && bias.is_contiguous(), "bias_gelu: x and bias must be contiguous");
  const std::int64_t columns = bias.size(0);
  const std::int64_t rows = columns > 0 ? x.numel() / columns : 0;
  torch::Tensor out = torch::empty_like(x);
  C10_CUDA_CHECK(bias_gelu_launch(out.data_ptr<float>(), x.data_ptr<float>(), bias.data_ptr<float>(), rows, columns,
                                  c10::cuda::getCurrentCUDAStream()));
  return out;
}

static void bind_bias_gelu(pybind11::module& m) {
  m.def("bias_gelu", &bias_gelu, pybind11::arg("x"), pybind11::arg("bias"));
}

REGISTER_BINDING(bias_gelu, bind_bias_gelu);
