// linear_relu(x, weight, bias) -> relu(x @ weight.T + bias) for contiguous float32 x [..., inputs], weight
// [outputs, inputs] and bias [outputs].
#include <cstddef>
#include <cstdint>
#include <vector>

#include <cublasLt.h>

#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include "../binding_registry.h"

extern "C" cublasStatus_t linear_relu_launch(float* out, const float* x, const float* weight, const float* bias,
                                             void* workspace, std::size_t workspace_bytes, std::int64_t rows,
                                             std::int64_t inputs, std::int64_t outputs, int device,
                                             cudaStream_t stream);

// What NVIDIA recommends for Hopper.
static constexpr std::int64_t workspace_bytes = 32 << 20;

static torch::Tensor linear_relu(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  TORCH_CHECK(x.is_cuda() && weight.is_cuda() && bias.is_cuda(), "linear_relu: x, weight and bias must be on the GPU");
  TORCH_CHECK(x.dim() >= 1 && weight.dim() == 2 && bias.dim() == 1 && weight.size(1) == x.size(-1) &&
                  weight.size(0) == bias.size(0) && weight.size(1) > 0,
              "linear_relu: x is ", x.sizes(), ", weight is ", weight.sizes(), " and bias is ", bias.sizes(),
              "; they must be [..., inputs], [outputs, inputs] and [outputs]");
  TORCH_CHECK(x.is_contiguous() && weight.is_contiguous() && bias.is_contiguous(),
              "linear_relu: x, weight and bias must be contiguous");
  const std::int64_t inputs = weight.size(1);
  const std::int64_t outputs = weight.size(0);
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.back() = outputs;
  torch::Tensor out = torch::empty(sizes, x.options());
  torch::Tensor workspace = torch::empty({workspace_bytes}, x.options().dtype(torch::kUInt8));
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const cublasStatus_t status = linear_relu_launch(out.data_ptr<float>(), x.data_ptr<float>(), weight.data_ptr<float>(),
                                                   bias.data_ptr<float>(), workspace.data_ptr(), workspace_bytes,
                                                   x.numel() / inputs, inputs, outputs, stream.device_index(), stream);
  TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "linear_relu: cuBLASLt says ", cublasLtGetStatusString(status));
  return out;
}

static void bind_linear_relu(pybind11::module& m) {
  m.def("linear_relu", &linear_relu, pybind11::arg("x"), pybind11::arg("weight"), pybind11::arg("bias"));
}

REGISTER_BINDING(linear_relu, bind_linear_relu);
