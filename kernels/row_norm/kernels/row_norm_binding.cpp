// row_norm(x) -> [rows]: the L2 norm over the last dimension of a contiguous float32 tensor [rows, columns].
#include <cstdint>
#include <limits>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include "../binding_registry.h"

extern "C" cudaError_t row_norm_launch(float* out, const float* x, std::int64_t rows, std::int64_t columns,
                                       cudaStream_t stream);

static torch::Tensor row_norm(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda(), "row_norm: x must be on the GPU");
  TORCH_CHECK(x.dim() == 2, "row_norm: x is ", x.sizes(), "; it must be [rows, columns]");
  TORCH_CHECK(x.is_contiguous(), "row_norm: x must be contiguous");
  TORCH_CHECK(x.size(0) <= std::numeric_limits<int>::max(), "row_norm: too many rows");
  torch::Tensor out = torch::empty({x.size(0)}, x.options());
  C10_CUDA_CHECK(row_norm_launch(out.data_ptr<float>(), x.data_ptr<float>(), x.size(0), x.size(1),
                                 c10::cuda::getCurrentCUDAStream()));
  return out;
}

static void bind_row_norm(pybind11::module& m) { m.def("row_norm", &row_norm, pybind11::arg("x")); }

REGISTER_BINDING(row_norm, bind_row_norm);
