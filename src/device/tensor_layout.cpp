#include "device/tensor_layout.hpp"

#include <array>
#include <stdexcept>
#include <utility>

#include <spdlog/fmt/fmt.h>

namespace cuda_agent::device {
namespace {

struct DTypeFacts {
  DType dtype;
  std::string_view name;
  std::size_t size;
};

constexpr std::array dtype_facts = {
    DTypeFacts{DType::float64, "float64", 8},
    DTypeFacts{DType::float32, "float32", 4},
    DTypeFacts{DType::float16, "float16", 2},
    DTypeFacts{DType::bfloat16, "bfloat16", 2},
    DTypeFacts{DType::float8_e4m3fn, "float8_e4m3fn", 1},
    DTypeFacts{DType::float8_e5m2, "float8_e5m2", 1},
    DTypeFacts{DType::complex128, "complex128", 16},
    DTypeFacts{DType::complex64, "complex64", 8},
    DTypeFacts{DType::complex32, "complex32", 4},
    DTypeFacts{DType::int64, "int64", 8},
    DTypeFacts{DType::int32, "int32", 4},
    DTypeFacts{DType::int16, "int16", 2},
    DTypeFacts{DType::int8, "int8", 1},
    DTypeFacts{DType::uint8, "uint8", 1},
    DTypeFacts{DType::uint16, "uint16", 2},
    DTypeFacts{DType::uint32, "uint32", 4},
    DTypeFacts{DType::uint64, "uint64", 8},
    DTypeFacts{DType::boolean, "bool", 1},
};

const DTypeFacts& facts_of(DType dtype) {
  for (const DTypeFacts& facts : dtype_facts) {
    if (facts.dtype == dtype) {
      return facts;
    }
  }
  throw std::invalid_argument("a DType outside of the enumeration");
}

// torch itself stops at 64 dimensions.
constexpr std::size_t most_dimensions = 64;

std::string describe(const TensorLayout& layout) {
  return fmt::format("a {} tensor of shape {}, stride {}, offset {}", to_string(layout.dtype), bracketed(layout.shape),
                     bracketed(layout.stride), layout.offset);
}

}  // namespace

std::optional<DType> parse_dtype(std::string_view torch_name) {
  for (const DTypeFacts& facts : dtype_facts) {
    if (facts.name == torch_name) {
      return facts.dtype;
    }
  }
  return std::nullopt;
}

std::string_view to_string(DType dtype) { return facts_of(dtype).name; }

std::size_t item_size(DType dtype) { return facts_of(dtype).size; }

bool is_floating(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return true;
    default:
      return false;
  }
}

bool is_complex(DType dtype) {
  return dtype == DType::complex128 || dtype == DType::complex64 || dtype == DType::complex32;
}

std::int64_t numel(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  bool empty = false;
  bool overflow = false;
  for (const std::int64_t size : shape) {
    if (size < 0) {
      throw std::overflow_error(fmt::format("a dimension of {} elements", size));
    }
    empty = empty || size == 0;
    // Goes on after an overflow: a later dimension of 0 makes the tensor empty whatever came before.
    overflow = overflow || (size != 0 && __builtin_mul_overflow(product, size, &product));
  }
  if (empty) {
    return 0;
  }
  if (overflow) {
    throw std::overflow_error(fmt::format("the number of elements of shape {} does not fit 63 bits", bracketed(shape)));
  }
  return product;
}

std::int64_t numel(const TensorLayout& layout) { return numel(std::span(layout.shape)); }

Result<std::uint64_t> extent_bytes(const TensorLayout& layout) {
  const auto impossible = [&](std::string_view why) {
    return fail(Outcome::internal_error, fmt::format("{} is impossible: {}", describe(layout), why));
  };
  if (layout.shape.size() != layout.stride.size()) {
    return impossible("shape and stride must have as many entries");
  }
  if (layout.shape.size() > most_dimensions) {
    return impossible("at most 64 dimensions are supported");
  }
  bool empty = false;
  bool overflow = false;
  std::int64_t count = 1;
  std::uint64_t last = 0;  // element furthest from [0, …], in elements
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    const std::int64_t size = layout.shape[i];
    const std::int64_t stride = layout.stride[i];
    if (size < 0) {
      return impossible("a dimension is negative");
    }
    if (stride < 0) {
      return impossible("a stride is negative");
    }
    if (size == 0) {
      empty = true;
      continue;
    }
    std::uint64_t reach = 0;
    overflow =
        overflow || __builtin_mul_overflow(count, size, &count) ||
        __builtin_mul_overflow(static_cast<std::uint64_t>(size - 1), static_cast<std::uint64_t>(stride), &reach) ||
        __builtin_add_overflow(last, reach, &last);
  }
  if (empty) {
    return 0;
  }
  std::uint64_t extent = 0;
  std::uint64_t end = 0;
  const std::uint64_t item = item_size(layout.dtype);
  overflow = overflow || __builtin_mul_overflow(last, item, &extent) || __builtin_add_overflow(extent, item, &extent) ||
             __builtin_add_overflow(layout.offset, extent, &end);
  if (overflow) {
    return impossible("its size does not fit 64 bits");
  }
  return extent;
}

bool is_contiguous(const TensorLayout& layout) {
  std::int64_t expected = 1;
  if (layout.shape.size() != layout.stride.size()) {
    return false;
  }
  if (numel(layout) == 0) {
    return true;
  }
  for (std::size_t i = layout.shape.size(); i-- > 0;) {
    if (layout.shape[i] != 1 && layout.stride[i] != expected) {
      return false;
    }
    expected *= layout.shape[i];
  }
  return true;
}

TensorLayout contiguous(DType dtype, std::vector<std::int64_t> shape, std::uint64_t offset) {
  std::vector<std::int64_t> stride(shape.size(), 1);
  // Checks that the products below fit. Where the tensor is empty the strides may still not: any will do then.
  if (numel(std::span<const std::int64_t>(shape)) > 0) {
    for (std::size_t i = shape.size(); i-- > 1;) {
      stride[i - 1] = stride[i] * shape[i];
    }
  }
  return TensorLayout{dtype, std::move(shape), std::move(stride), offset};
}

std::vector<std::int64_t> unravel(std::int64_t flat, std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] > 0) {
      index[i] = flat % shape[i];
      flat /= shape[i];
    }
  }
  return index;
}

std::string bracketed(std::span<const std::int64_t> values) {
  std::string text = "[";
  for (const std::int64_t value : values) {
    text += text.size() > 1 ? ", " : "";
    text += std::to_string(value);
  }
  return text + "]";
}

}  // namespace cuda_agent::device
