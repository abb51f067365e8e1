// Comparison of a result with its reference, on the host. The rule is written down in docs/verdict.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "cuda_agent/error.hpp"
#include "device/tensor_layout.hpp"

namespace cuda_agent::device {

struct CompareOptions {
  double rtol = 0;
  double atol = 0;
  bool equal_nan = true;          ///< NaN where the reference has NaN is right
  bool scale_atol_by_rms = true;  ///< atol · min(1, RMS of the reference's finite elements)
};

/// What was seen. Errors are |got − expected| (complex: the modulus) over the elements that are finite on both sides.
struct CompareResult {
  std::int64_t elements = 0;
  std::int64_t finite = 0;          ///< elements that are finite on both sides
  std::int64_t mismatches = 0;      ///< elements out of tolerance, those of the next two included
  std::int64_t nan_mismatches = 0;  ///< NaN on one side only (or on any, without equal_nan)
  std::int64_t inf_mismatches = 0;  ///< an infinity on one side only, or of the other sign
  double max_abs = 0;
  double max_rel = 0;           ///< largest error / |expected|; infinite where expected is 0 and got is not
  double rms_expected = 0;      ///< over the finite elements of the reference
  double max_abs_over_rms = 0;  ///< max_abs / rms_expected; infinite when only the latter is 0
  double rms_error = 0;
  std::int64_t first_mismatch = -1;  ///< number of the element in row-major order; -1: none
  std::int64_t worst = -1;           ///< where max_abs is; -1: no error at all
  std::string first_expected;        ///< values as text, shortest that reads back the same; empty: none
  std::string first_got;
  std::string worst_expected;
  std::string worst_got;
  bool expected_nonzero = false;  ///< some element of the reference is not 0
  bool got_all_zero = false;      ///< every element of the result is 0 (false for an empty one)

  /// Every element within tolerance, and not zeros in place of a reference that has other values.
  bool ok() const { return mismatches == 0 && !(got_all_zero && expected_nonzero); }
};

/// Compares `got` with `expected` element by element: |got − expected| ≤ atol' + rtol · |expected|, where atol' is
/// atol · min(1, RMS of the finite reference) — or atol itself for a reference of nothing but zeros, which has no
/// scale. Integers and bools must be equal (bools: as truth values); NaN must meet NaN and an infinity one of the same
/// sign. Both layouts must have the same dtype and shape; strides and offsets may differ, stride 0 included. An error
/// when they do not, or when a layout reaches outside of its bytes; nothing is read then.
Result<CompareResult> compare(std::span<const std::byte> expected, const TensorLayout& expected_layout,
                              std::span<const std::byte> got, const TensorLayout& got_layout,
                              const CompareOptions& options);

/// Element `flat` (row-major) as text. The layout must lie within the bytes and `flat` within the tensor; an error
/// otherwise.
Result<std::string> element_text(std::span<const std::byte> bytes, const TensorLayout& layout, std::int64_t flat);

/// A fast 64-bit checksum that depends on every bit and its position. Not cryptographic: give it a `seed` that the
/// checked code does not know.
std::uint64_t checksum(std::span<const std::byte> bytes, std::uint64_t seed = 0);

}  // namespace cuda_agent::device
