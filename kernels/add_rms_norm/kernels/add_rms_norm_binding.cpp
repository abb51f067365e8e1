// add_rms_norm(x, residual, weight, eps) -> (x + residual, the same normalised by the root mean square of its row and
// multiplied by weight), for contiguous bfloat16 x and residual [..., columns] and weight [columns].
#include <cstdint>
#include <limits>
#include <tuple>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include "../binding_registry.h"

extern "C" cudaError_t add_rms_norm_launch(void* total, void* normed, const void* x, const void* residual,
                                           const void* weight, std::int64_t rows, std::int64_t columns, float eps,
                                           cudaStream_t stream);

static std::tuple<torch::Tensor, torch::Tensor> add_rms_norm(const torch::Tensor& x, const torch::Tensor& residual,
                                                             const torch::Tensor& weight, double eps) {
  for (const torch::Tensor& tensor : {x, residual, weight}) {
    TORCH_CHECK(tensor.is_cuda(), "add_rms_norm: x, residual and weight must be on the GPU");
    TORCH_CHECK(tensor.scalar_type() == torch::kBFloat16, "add_rms_norm: x, residual and weight must be bfloat16");
    TORCH_CHECK(tensor.is_contiguous(), "add_rms_norm: x, residual and weight must be contiguous");
  }
  TORCH_CHECK(x.dim() >= 1 && residual.sizes() == x.sizes() && weight.dim() == 1 && weight.size(0) == x.size(-1),
              "add_rms_norm: x is ", x.sizes(), ", residual is ", residual.sizes(), " and weight is ", weight.sizes(),
              "; they must be [..., columns], the same, and [columns]");
  const std::int64_t columns = weight.size(0);
  const std::int64_t rows = columns > 0 ? x.numel() / columns : 0;
  TORCH_CHECK(rows <= std::numeric_limits<int>::max(), "add_rms_norm: too many rows");
  torch::Tensor total = torch::empty_like(x);
  torch::Tensor normed = torch::empty_like(x);
  C10_CUDA_CHECK(add_rms_norm_launch(total.data_ptr(), normed.data_ptr(), x.data_ptr(), residual.data_ptr(),
                                     weight.data_ptr(), rows, columns, static_cast<float>(eps),
                                     c10::cuda::getCurrentCUDAStream()));
  return {total, normed};
}

static void bind_add_rms_norm(pybind11::module& m) {
  m.def("add_rms_norm", &add_rms_norm, pybind11::arg("x"), pybind11::arg("residual"), pybind11::arg("weight"),
        pybind11::arg("eps"));
}

REGISTER_BINDING(add_rms_norm, bind_add_rms_norm);
