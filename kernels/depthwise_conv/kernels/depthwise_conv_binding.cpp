// depthwise_conv(x, weight): 3x3, stride 1, padding 1, for contiguous float32 x [batch, channels, height, width] and
// weight [channels, 1, 3, 3].
#include <cstdint>
#include <limits>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include "../binding_registry.h"

extern "C" cudaError_t depthwise_conv_launch(float* out, const float* in, const float* weight, unsigned planes,
                                             unsigned channels, int height, int width, cudaStream_t stream);

static torch::Tensor depthwise_conv(const torch::Tensor& x, const torch::Tensor& weight) {
  TORCH_CHECK(x.is_cuda() && weight.is_cuda(), "depthwise_conv: x and weight must be on the GPU");
  TORCH_CHECK(x.dim() == 4 && weight.dim() == 4 && weight.size(0) == x.size(1) && weight.size(1) == 1 &&
                  weight.size(2) == 3 && weight.size(3) == 3,
              "depthwise_conv: x is ", x.sizes(), " and weight is ", weight.sizes(),
              "; they must be [batch, channels, height, width] and [channels, 1, 3, 3]");
  TORCH_CHECK(x.is_contiguous() && weight.is_contiguous(), "depthwise_conv: x and weight must be contiguous");
  const std::int64_t planes = x.size(0) * x.size(1);
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  TORCH_CHECK(planes <= most && (x.size(2) + 8) * (x.size(3) + 8) <= most, "depthwise_conv: x is too large");
  torch::Tensor out = torch::empty_like(x);
  C10_CUDA_CHECK(depthwise_conv_launch(out.data_ptr<float>(), x.data_ptr<float>(), weight.data_ptr<float>(),
                                       static_cast<unsigned>(planes), static_cast<unsigned>(x.size(1)),
                                       static_cast<int>(x.size(2)), static_cast<int>(x.size(3)),
                                       c10::cuda::getCurrentCUDAStream()));
  return out;
}

static void bind_depthwise_conv(pybind11::module& m) {
  m.def("depthwise_conv", &depthwise_conv, pybind11::arg("x"), pybind11::arg("weight"));
}

REGISTER_BINDING(depthwise_conv, bind_depthwise_conv);
