// How a tensor lies in an arena: element type, shape, strides, offset. Layouts may come from a worker, so every
// function here that turns one into an address checks it first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_agent/error.hpp"

namespace cuda_agent::device {

enum class DType {
  float64,
  float32,
  float16,
  bfloat16,
  float8_e4m3fn,
  float8_e5m2,
  complex128,
  complex64,
  complex32,
  int64,
  int32,
  int16,
  int8,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,
};

/// The dtype that torch calls `torch.<torch_name>` ("float32", "bool", …); nothing for any other word, aliases such
/// as "half" included.
std::optional<DType> parse_dtype(std::string_view torch_name);

/// The name that parse_dtype reads back.
std::string_view to_string(DType dtype);

/// Bytes of one element.
std::size_t item_size(DType dtype);

/// Real floating point, complex not included.
bool is_floating(DType dtype);
bool is_complex(DType dtype);

struct TensorLayout {
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;   ///< empty for a 0-d tensor
  std::vector<std::int64_t> stride;  ///< in elements, one a dimension, ≥ 0
  std::uint64_t offset = 0;          ///< bytes from the start of its arena or buffer to element [0, …]

  bool operator==(const TensorLayout&) const = default;
};

/// The number of elements; 1 for a 0-d tensor. Throws std::overflow_error when a dimension is negative or the number
/// does not fit: check a layout that comes from a worker with extent_bytes first.
std::int64_t numel(std::span<const std::int64_t> shape);
std::int64_t numel(const TensorLayout& layout);

/// Bytes from `offset` to one past the last byte of the element that lies furthest; 0 for an empty tensor. An error
/// when the layout is impossible: shape and stride of different lengths, more than 64 dimensions, a negative dimension
/// or stride, a number of elements or an end (offset + extent) that does not fit 64 bits.
Result<std::uint64_t> extent_bytes(const TensorLayout& layout);

/// Whether the elements lie one after another in row-major order (strides of dimensions of size 1 do not matter).
bool is_contiguous(const TensorLayout& layout);

/// The row-major layout of `shape` at `offset` bytes.
TensorLayout contiguous(DType dtype, std::vector<std::int64_t> shape, std::uint64_t offset = 0);

/// The index of the element that is number `flat` in row-major order; `flat` in [0, numel(shape)).
std::vector<std::int64_t> unravel(std::int64_t flat, std::span<const std::int64_t> shape);

/// "[2, 3]", for messages.
std::string bracketed(std::span<const std::int64_t> values);

}  // namespace cuda_agent::device
