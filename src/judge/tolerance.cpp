#include "judge/tolerance.hpp"

namespace cuda_agent::judge {
namespace {

bool is_exact(device::DType dtype) { return !device::is_floating(dtype) && !device::is_complex(dtype); }

}  // namespace

Tolerance default_tolerance(device::DType dtype) {
  using device::DType;
  switch (dtype) {
    case DType::float64:
    case DType::complex128:
      return {1e-4, 1e-4};
    case DType::float32:
    case DType::complex64:
    case DType::float16:
    case DType::bfloat16:
    case DType::complex32:
      return {1e-2, 1e-2};
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return {1e-1, 1e-1};
    default:
      return {0, 0};
  }
}

Tolerance tolerance_for(device::DType dtype, std::optional<double> rtol, std::optional<double> atol) {
  const Tolerance usual = default_tolerance(dtype);
  if (is_exact(dtype)) {
    return usual;
  }
  return {rtol.value_or(usual.rtol), atol.value_or(usual.atol)};
}

}  // namespace cuda_agent::judge
