// out[r, o] = relu(sum over i of x[r, i] * weight[o, i] + bias[o]) on the GPU, all row-major and float32.
//
// Bound by arithmetic: 2 * rows * inputs * outputs operations on the fp32 units, where cuBLAS is hard to beat. What is
// left to win is the pass over the result that a ReLU of its own takes, so bias and ReLU go into the product's
// epilogue. CUBLAS_COMPUTE_32F is fp32 throughout: no TF32.
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include <cublasLt.h>
#include <cuda_runtime.h>

#define TRY(call)                                       \
  do {                                                  \
    const cublasStatus_t status = (call);               \
    if (status != CUBLAS_STATUS_SUCCESS) return status; \
  } while (false)

namespace {

constexpr std::uint32_t kMostAlignment = 256;

struct Call {
  float* out;
  const float* x;
  const float* weight;
  const float* bias;
  void* workspace;
  std::size_t workspace_bytes;
  std::int64_t rows;
  std::int64_t inputs;
  std::int64_t outputs;
};

// What cuBLASLt must know of a product before it is asked for one; plain values, nothing to destroy.
struct Plan {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t weight;
  cublasLtMatrixLayoutOpaque_t x;
  cublasLtMatrixLayoutOpaque_t out;
  cublasLtMatmulAlgo_t algorithm;
};

std::uint32_t alignment_of(const Call& call) {
  std::uintptr_t bits = kMostAlignment;
  for (const void* pointer : {static_cast<const void*>(call.out), static_cast<const void*>(call.x),
                              static_cast<const void*>(call.weight), static_cast<const void*>(call.bias)}) {
    bits |= reinterpret_cast<std::uintptr_t>(pointer);
  }
  return static_cast<std::uint32_t>(bits & (~bits + 1));  // the lowest bit that is set in any of them
}

template <typename T>
cublasStatus_t set(cublasLtMatmulDescOpaque_t& operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  return cublasLtMatmulDescSetAttribute(&operation, attribute, &value, sizeof(value));
}

template <typename T>
cublasStatus_t set(cublasLtMatmulPreferenceOpaque_t& preference, cublasLtMatmulPreferenceAttributes_t attribute,
                   const T& value) {
  return cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value));
}

// cuBLAS counts in columns, and a row-major matrix is its transpose by columns: out^T = weight * x^T. The bias then
// runs down the columns of out^T, as the epilogue wants it.
cublasStatus_t describe(Plan& plan, const Call& call) {
  TRY(cublasLtMatmulDescInit(&plan.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  TRY(set(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T));
  TRY(set(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU_BIAS));
  TRY(set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias));
  TRY(cublasLtMatrixLayoutInit(&plan.weight, CUDA_R_32F, call.inputs, call.outputs, call.inputs));
  TRY(cublasLtMatrixLayoutInit(&plan.x, CUDA_R_32F, call.inputs, call.rows, call.inputs));
  TRY(cublasLtMatrixLayoutInit(&plan.out, CUDA_R_32F, call.outputs, call.rows, call.outputs));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t choose(Plan& plan, cublasLtHandle_t handle, const Call& call, std::uint32_t alignment) {
  cublasLtMatmulPreferenceOpaque_t preference;
  TRY(cublasLtMatmulPreferenceInit(&preference));
  TRY(set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, call.workspace_bytes));
  for (auto attribute : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    TRY(set(preference, attribute, alignment));
  }
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  TRY(cublasLtMatmulAlgoGetHeuristic(handle, &plan.operation, &plan.weight, &plan.x, &plan.out, &plan.out, &preference,
                                     1, &found, &count));
  if (count == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  plan.algorithm = found.algo;
  return CUBLAS_STATUS_SUCCESS;
}

// A handle for each device and a plan for each shape, made when first asked for and kept as long as the process lives:
// making them takes much longer than to enqueue a product. Of the values nothing is kept.
cublasStatus_t find_plan(Plan& plan, cublasLtHandle_t& handle, const Call& call, int device) {
  static std::mutex mutex;
  static std::map<int, cublasLtHandle_t> handles;
  static std::map<std::tuple<int, std::int64_t, std::int64_t, std::int64_t, std::uint32_t>, Plan> plans;
  const std::lock_guard<std::mutex> lock(mutex);
  cublasLtHandle_t& kept = handles[device];
  if (kept == nullptr) TRY(cublasLtCreate(&kept));
  handle = kept;
  const std::uint32_t alignment = alignment_of(call);
  const auto key = std::make_tuple(device, call.rows, call.inputs, call.outputs, alignment);
  const auto found = plans.find(key);
  if (found != plans.end()) {
    plan = found->second;
    return set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias);
  }
  TRY(describe(plan, call));
  TRY(choose(plan, handle, call, alignment));
  plans.emplace(key, plan);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

/// Returns what cuBLASLt returned. `stream` is the one to launch on, `device` the one that it is of, and
/// `workspace_bytes` the same for every call.
extern "C" cublasStatus_t linear_relu_launch(float* out, const float* x, const float* weight, const float* bias,
                                             void* workspace, std::size_t workspace_bytes, std::int64_t rows,
                                             std::int64_t inputs, std::int64_t outputs, int device,
                                             cudaStream_t stream) {
  if (rows == 0 || outputs == 0) return CUBLAS_STATUS_SUCCESS;
  const Call call = {out, x, weight, bias, workspace, workspace_bytes, rows, inputs, outputs};
  Plan plan;
  cublasLtHandle_t handle = nullptr;
  TRY(find_plan(plan, handle, call, device));
  const float one = 1.0f;
  const float zero = 0.0f;
  return cublasLtMatmul(handle, &plan.operation, &one, weight, &plan.weight, x, &plan.x, &zero, out, &plan.out, out,
                        &plan.out, &plan.algorithm, workspace, workspace_bytes, stream);
}
