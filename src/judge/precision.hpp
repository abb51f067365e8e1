// How precise a result is, and how precise it has to be (--precision).
#pragma once

#include <string_view>

namespace cuda_agent::judge {

enum class PrecisionRule {
  same,  ///< a candidate must be of eager's class
  any,   ///< the tolerance alone decides: the CUDA Agent paper's rule
  tf32,  ///< eager may use TF32 as well, and a candidate may be of that class
};
std::string_view to_string(PrecisionRule rule);

/// By the error against float64 (RMS of the errors / RMS of the exact results): "fp32", "tf32 or fp16" (both keep 10
/// bits), "bf16 or less". Errors grow from layer to layer, in single precision as well: by as much as eager's is above
/// that of one operation, the last class begins later.
std::string_view precision_class(double error, double eager_error = 0);
inline constexpr std::string_view few_bits = "bf16 or less";

/// Whether a result with this error is of a lower class than eager's: its error is 64 times as large, and larger than
/// what sums in another order and approximate functions of single precision make (2⁻¹⁵; with TF32 allowed 2⁻⁹).
bool is_lower_precision(PrecisionRule rule, double eager_error, double candidate_error);

}  // namespace cuda_agent::judge
