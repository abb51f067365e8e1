// What a model returned, as a worker describes it, and its comparison with what was expected.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cuda_agent/error.hpp"
#include "cuda_agent/verdict.hpp"
#include "device/backend.hpp"
#include "device/tensor_layout.hpp"

namespace cuda_agent::judge {

/// One value of a returned tree. Offsets of tensors count from the start of the call's output region.
struct OutputNode {
  std::string kind;  ///< tensor, tuple, list, dict, fields, none, bool, int, float, complex, str, refused
  std::string text;
  std::string device;
  std::vector<std::string> names;
  std::vector<OutputNode> items;
  std::optional<device::TensorLayout> tensor;
};

/// Errors: internal_error that says what is malformed (the caller knows whose words they are).
Result<OutputNode> parse_output(const nlohmann::json& described);

/// Every tensor of the tree, in order, with its path ("output[1].logits").
struct OutputLeaf {
  std::string path;
  const OutputNode* node;
};
std::vector<OutputLeaf> tensors_of(const OutputNode& root);

/// Bytes of all tensors when stored one after the other, expanded ones in full; nothing when that overflows.
std::optional<std::uint64_t> bytes_in_full(const OutputNode& root);

struct ToleranceOverride {
  std::optional<double> rtol;
  std::optional<double> atol;
  bool off = false;  ///< whatever a candidate gives is accepted (--without comparison)
};

struct OutputCheck {
  bool ok = true;
  std::string sentence;  ///< the first thing that is wrong; empty when ok
  std::optional<ElementDifference> first_mismatch;
  std::optional<ElementDifference> worst;
  double worst_rms_scaled = 0;
  std::map<std::string, Tolerance> tolerances;
  bool all_zero = true;    ///< the expected tensors hold nothing but zeros
  bool all_finite = true;  ///< no NaN and no infinity on either side
  /// Of the tensors of single precision: largest RMS of the errors / RMS of what was expected. None: there is none.
  std::optional<double> single_rms_error;
};

/// Compares structure, shapes, dtypes, devices and then values. `expected` and `got` are the regions in which the two
/// results lie. Errors are ours (environment, internal); what is wrong with the result is in OutputCheck.
Result<OutputCheck> check_output(device::Backend& backend, const OutputNode& expected, const device::Span& expected_at,
                                 const OutputNode& got, const device::Span& got_at, const ToleranceOverride& tolerance);

}  // namespace cuda_agent::judge
