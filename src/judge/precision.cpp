#include "judge/precision.hpp"

#include <algorithm>

namespace cuda_agent::judge {
namespace {

constexpr double largest_of_fp32 = 0x1p-15;
/// Between one rounded value or product of 10 bits (2e-4, 3e-4) and of 7 bits (1.6e-3, 2.3e-3).
constexpr double largest_of_tf32 = 0x1.6p-11;
/// With TF32 allowed: what it comes to in several layers.
constexpr double allowed_with_tf32 = 0x1p-9;
/// One operation in single precision.
constexpr double one_rounding = 0x1p-25;
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

std::string_view precision_class(double error, double eager_error) {
  if (error <= largest_of_fp32) return "fp32";
  double const grown = std::clamp(eager_error / one_rounding, 1.0, much_larger);
  return error <= largest_of_tf32 * grown ? "tf32 or fp16" : few_bits;
}

bool is_lower_precision(PrecisionRule rule, double eager_error, double candidate_error) {
  if (rule == PrecisionRule::any) return false;
  double const allowed = rule == PrecisionRule::tf32 ? allowed_with_tf32 : largest_of_fp32;
  return candidate_error > std::max(allowed, much_larger * eager_error);
}

}  // namespace cuda_agent::judge
