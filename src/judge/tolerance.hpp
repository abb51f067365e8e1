// How far a result may be from its reference, by dtype (docs/verdict.md).
#pragma once

#include <optional>

#include "cuda_agent/verdict.hpp"
#include "device/tensor_layout.hpp"

namespace cuda_agent::judge {

/// float32 and complex64: 1e-2, as in the published protocol; float16, bfloat16 and complex32: 1e-2; float8: 1e-1;
/// float64 and complex128: 1e-4; integers and bools: 0. Both rtol and atol.
Tolerance default_tolerance(device::DType dtype);

/// The default, with `--rtol` and `--atol` in its place where given. Integers and bools stay exact.
Tolerance tolerance_for(device::DType dtype, std::optional<double> rtol, std::optional<double> atol);

}  // namespace cuda_agent::judge
