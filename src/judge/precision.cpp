#include "judge/precision.hpp"

#include <algorithm>

namespace cuda_agent::judge {
namespace {

/// Errors of results with 10 bits lie between 2⁻¹³ and 2⁻¹⁰, of those with 7 bits above.
constexpr double largest_of_fp32 = 0x1p-15;
constexpr double largest_of_tf32 = 0x1p-9;
constexpr double much_larger = 64;

}  // namespace

std::string_view to_string(PrecisionRule rule) {
  switch (rule) {
    case PrecisionRule::same:
      return "same";
    case PrecisionRule::any:
      return "any";
    case PrecisionRule::tf32:
      return "tf32";
  }
  return "";
}

std::string_view precision_class(double error) {
  if (error <= largest_of_fp32) return "fp32";
  return error <= largest_of_tf32 ? "tf32 or fp16" : "bf16 or less";
}

bool is_lower_precision(PrecisionRule rule, double eager_error, double candidate_error) {
  if (rule == PrecisionRule::any) return false;
  double const allowed = rule == PrecisionRule::tf32 ? largest_of_tf32 : largest_of_fp32;
  return candidate_error > std::max(allowed, much_larger * eager_error);
}

}  // namespace cuda_agent::judge
