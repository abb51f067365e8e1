// softmax(x) -> softmax over the last dimension of a contiguous float32 tensor.
#include <cstdint>
#include <limits>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include "../binding_registry.h"

extern "C" cudaError_t softmax_launch(float* out, const float* x, std::int64_t rows, std::int64_t columns,
                                      cudaStream_t stream);

static torch::Tensor softmax(const torch::Tensor& x) {
  TORCH_CHECK(x.is_cuda(), "softmax: x must be on the GPU");
  TORCH_CHECK(x.dim() >= 1, "softmax: x must have a dimension to work along");
  TORCH_CHECK(x.is_contiguous(), "softmax: x must be contiguous");
  const std::int64_t columns = x.size(-1);
  const std::int64_t rows = columns > 0 ? x.numel() / columns : 0;
  TORCH_CHECK(rows <= std::numeric_limits<int>::max(), "softmax: too many rows");
  torch::Tensor out = torch::empty_like(x);
  C10_CUDA_CHECK(
      softmax_launch(out.data_ptr<float>(), x.data_ptr<float>(), rows, columns, c10::cuda::getCurrentCUDAStream()));
  return out;
}

static void bind_softmax(pybind11::module& m) { m.def("softmax", &softmax, pybind11::arg("x")); }

REGISTER_BINDING(softmax, bind_softmax);
