// out[r, o] = relu(sum over i of x[r, i] * weight[o, i] + bias[o]) on the GPU, all row-major and float32.
//
// Bound by arithmetic: 2 * rows * inputs * outputs floating-point operations on the fp32 units, where cuBLAS is hard to
// beat. What is left to win is the pass over the result that a ReLU of its own takes: bias and ReLU go into the
// product's epilogue. CUBLAS_COMPUTE_32F is fp32 throughout, without TF32.
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <cublasLt.h>
#include <cuda_runtime.h>

namespace {

// Destroyed with the last that uses it; cuBLASLt's handles are pointers to incomplete types.
template <typename T>
using Owned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;
template <typename T>
Owned<T> none(cublasStatus_t (*destroy)(T*)) {
  return Owned<T>(nullptr, destroy);
}

using Handle = Owned<std::remove_pointer_t<cublasLtHandle_t>>;
using Operation = Owned<std::remove_pointer_t<cublasLtMatmulDesc_t>>;
using Layout = Owned<std::remove_pointer_t<cublasLtMatrixLayout_t>>;
using Preference = Owned<std::remove_pointer_t<cublasLtMatmulPreference_t>>;

}  // namespace
