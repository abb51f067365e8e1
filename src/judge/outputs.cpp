#include "judge/outputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "judge/tolerance.hpp"
#include "util/text.hpp"

namespace cuda_agent::judge {
namespace {

constexpr int max_depth = 40;
constexpr std::uint64_t alignment = 256;

/// The same shape without gaps or repeats, for its size alone. Strides that overflow become huge, which the check of
/// the extent then refuses.
device::TensorLayout dense_strides(const device::TensorLayout& layout) {
  device::TensorLayout dense = layout;
  dense.stride.assign(layout.shape.size(), 1);
  dense.offset = 0;
  std::int64_t step = 1;
  for (std::size_t d = layout.shape.size(); d-- > 0;) {
    dense.stride[d] = step;
    if (__builtin_mul_overflow(step, std::max<std::int64_t>(layout.shape[d], 1), &step)) {
      step = std::numeric_limits<std::int64_t>::max();
    }
  }
  return dense;
}

/// Parsing throws nlohmann's exceptions for anything that is not of the expected type; one catch turns them into an
/// error, so that every step here can stay plain.
OutputNode parse_node(const nlohmann::json& described, int depth) {
  if (depth > max_depth) throw std::length_error("nested too deep");
  OutputNode node;
  node.kind = described.at("kind").get<std::string>();
  node.text = util::escape_untrusted(described.value("text", std::string()), 256);
  if (node.kind == "tensor") {
    auto const name = described.at("dtype").get<std::string>();
    auto const dtype = device::parse_dtype(name);
    if (!dtype) {
      node.kind = "refused";
      node.text = fmt::format("a tensor of dtype {}, which cannot be compared", util::escape_untrusted(name, 64));
      return node;
    }
    device::TensorLayout layout;
    layout.dtype = *dtype;
    layout.shape = described.at("shape").get<std::vector<std::int64_t>>();
    layout.stride = described.at("stride").get<std::vector<std::int64_t>>();
    layout.offset = described.at("offset").get<std::uint64_t>();
    if (auto const extent = device::extent_bytes(layout); !extent) throw std::length_error(extent.error().message);
    if (auto const full = device::extent_bytes(dense_strides(layout)); !full) {
      throw std::length_error(full.error().message);
    }
    node.device = util::escape_untrusted(described.value("device", std::string()), 64);
    node.tensor = std::move(layout);
  }
  if (described.contains("names")) {
    for (auto const& name : described.at("names")) {
      node.names.push_back(util::escape_untrusted(name.get<std::string>(), 256));
    }
  }
  if (described.contains("items")) {
    for (auto const& item : described.at("items")) node.items.push_back(parse_node(item, depth + 1));
  }
  if (!node.names.empty() && node.names.size() != node.items.size()) throw std::length_error("names without items");
  return node;
}

bool is_container(const OutputNode& node) {
  return node.kind == "tuple" || node.kind == "list" || node.kind == "dict" || node.kind == "fields";
}

std::string child_path(const std::string& path, const OutputNode& node, std::size_t i) {
  if (node.names.empty()) return fmt::format("{}[{}]", path, i);
  if (node.kind == "dict") return fmt::format("{}['{}']", path, node.names[i]);
  return fmt::format("{}.{}", path, node.names[i]);
}

void collect(const OutputNode& node, const std::string& path, std::vector<OutputLeaf>& leaves) {
  if (node.tensor) leaves.push_back({path, &node});
  for (std::size_t i = 0; i < node.items.size(); ++i) collect(node.items[i], child_path(path, node, i), leaves);
}

std::string described(const OutputNode& node) {
  if (node.tensor) {
    return fmt::format("a {} tensor of shape {}", device::to_string(node.tensor->dtype),
                       device::bracketed(node.tensor->shape));
  }
  if (node.kind == "none") return "None";
  if (node.kind == "refused") return node.text;
  if (node.kind == "fields") return fmt::format("a {} with the fields {}", node.text, util::join(node.names, ", "));
  if (node.kind == "dict") return fmt::format("a dict with the keys {}", util::join(node.names, ", "));
  if (is_container(node)) return fmt::format("a {} of {} values", node.kind, node.items.size());
  return fmt::format("the {} {}", node.kind, node.text);
}

/// `got` with the items of its dicts in the order of `expected`'s: the order of a dict's keys means nothing.
OutputNode in_order_of(const OutputNode& expected, const OutputNode& got) {
  OutputNode ordered = got;
  if (expected.items.size() != got.items.size()) return ordered;
  for (std::size_t i = 0; i < expected.items.size(); ++i) {
    std::size_t from = i;
    if (expected.kind == "dict" && got.kind == "dict") {
      auto const found = std::find(got.names.begin(), got.names.end(), expected.names[i]);
      if (found == got.names.end()) return got;
      from = static_cast<std::size_t>(found - got.names.begin());
      ordered.names[i] = got.names[from];
    }
    ordered.items[i] = in_order_of(expected.items[i], got.items[from]);
  }
  return ordered;
}

/// How far apart the two printed values are. Values that are no real numbers ("nan", complex ones) keep 0: their texts
/// say it.
void note_distance(ElementDifference& difference) {
  char* end = nullptr;
  double const expected = std::strtod(difference.expected.c_str(), &end);
  bool const real = *end == '\0';
  double const got = std::strtod(difference.got.c_str(), &end);
  if (!real || *end != '\0' || !std::isfinite(expected) || !std::isfinite(got)) return;
  difference.absolute = std::abs(got - expected);
  difference.relative =
      expected == 0 ? std::numeric_limits<double>::infinity() : difference.absolute / std::abs(expected);
}

class Checker {
 public:
  Checker(device::Backend& backend, const device::Span& expected_at, const device::Span& got_at,
          const ToleranceOverride& tolerance)
      : m_backend(backend), m_expected_at(expected_at), m_got_at(got_at), m_tolerance(tolerance) {}

  Result<OutputCheck> check(const OutputNode& expected, const OutputNode& returned) {
    OutputNode const got = in_order_of(expected, returned);
    compare_structure(expected, got, "output");
    if (m_check.ok) {
      auto const left = tensors_of(expected);
      auto const right = tensors_of(got);
      for (std::size_t i = 0; i < left.size(); ++i) {
        if (auto done = compare_values(left[i], *right[i].node); !done) return fail(done.error());
      }
    }
    return std::move(m_check);
  }

 private:
  void wrong(std::string sentence) {
    if (m_check.ok) m_check.sentence = std::move(sentence);
    m_check.ok = false;
  }

  void compare_structure(const OutputNode& expected, const OutputNode& got, const std::string& path) {
    if (!m_check.ok) return;
    bool const same_kind = expected.kind == got.kind;
    if (!same_kind || expected.items.size() != got.items.size()) {
      return wrong(fmt::format("{} is {}, expected {}", path, described(got), described(expected)));
    }
    if (expected.tensor) return compare_tensor_type(expected, got, path);
    if (!is_container(expected)) {
      if (expected.text != got.text || expected.kind == "refused") {
        wrong(fmt::format("{} is {}, expected {}", path, described(got), described(expected)));
      }
      return;
    }
    if (expected.names != got.names) {
      return wrong(fmt::format("{} is {}, expected {}", path, described(got), described(expected)));
    }
    for (std::size_t i = 0; i < expected.items.size(); ++i) {
      compare_structure(expected.items[i], got.items[i], child_path(path, expected, i));
    }
  }

  void compare_tensor_type(const OutputNode& expected, const OutputNode& got, const std::string& path) {
    if (expected.tensor->shape != got.tensor->shape) {
      return wrong(fmt::format("{} has shape {}, expected {}", path, device::bracketed(got.tensor->shape),
                               device::bracketed(expected.tensor->shape)));
    }
    if (expected.tensor->dtype != got.tensor->dtype) {
      return wrong(fmt::format("{} has dtype {}, expected {}", path, device::to_string(got.tensor->dtype),
                               device::to_string(expected.tensor->dtype)));
    }
    if (expected.device != got.device) {
      wrong(fmt::format("{} is on device {}, expected {}", path, got.device, expected.device));
    }
  }

  Result<void> compare_values(const OutputLeaf& expected, const OutputNode& got) {
    auto const& layout = *expected.node->tensor;
    Tolerance const tolerance = tolerance_for(layout.dtype, m_tolerance.rtol, m_tolerance.atol);
    m_check.tolerances[std::string(device::to_string(layout.dtype))] = tolerance;
    device::CompareOptions options;
    options.rtol = tolerance.rtol;
    options.atol = tolerance.atol;
    auto compared = m_backend.compare(m_expected_at, layout, m_got_at, *got.tensor, options);
    if (!compared) return fail(compared.error());
    note(expected, *compared, tolerance);
    return {};
  }

  void note(const OutputLeaf& leaf, const device::CompareResult& result, const Tolerance& tolerance) {
    auto const& shape = leaf.node->tensor->shape;
    m_check.all_zero = m_check.all_zero && !result.expected_nonzero;
    m_check.all_finite = m_check.all_finite && result.finite == result.elements;
    if (leaf.node->tensor->dtype == device::DType::float32 && result.rms_expected > 0) {
      m_check.single_rms_error = std::max(m_check.single_rms_error.value_or(0), result.rms_error / result.rms_expected);
    }
    m_check.worst_rms_scaled = std::max(m_check.worst_rms_scaled, result.max_abs_over_rms);
    if (result.worst >= 0 && (!m_check.worst || result.max_abs > m_check.worst->absolute)) {
      ElementDifference worst;
      worst.output = leaf.path;
      worst.index = device::unravel(result.worst, shape);
      worst.expected = result.worst_expected;
      worst.got = result.worst_got;
      worst.absolute = result.max_abs;
      worst.relative = result.max_rel;
      m_check.worst = worst;
    }
    if (result.ok()) return;
    if (result.mismatches == 0) {
      return wrong(
          fmt::format("{} is all zeros, expected values with an RMS of {:.3g}", leaf.path, result.rms_expected));
    }
    ElementDifference first;
    first.output = leaf.path;
    first.index = device::unravel(result.first_mismatch, shape);
    first.expected = result.first_expected;
    first.got = result.first_got;
    note_distance(first);
    if (!m_check.first_mismatch) m_check.first_mismatch = first;
    std::string what;
    if (result.nan_mismatches > 0) {
      what = fmt::format(" ({} of them NaN on one side only)", result.nan_mismatches);
    } else if (result.inf_mismatches > 0) {
      what = fmt::format(" ({} of them infinite on one side only)", result.inf_mismatches);
    }
    wrong(fmt::format("{}{}: got {}, expected {}; {} of {} elements are out of tolerance (rtol {:g}, atol {:g}){}",
                      leaf.path, device::bracketed(first.index), first.got, first.expected, result.mismatches,
                      result.elements, tolerance.rtol, tolerance.atol, what));
  }

  device::Backend& m_backend;
  const device::Span& m_expected_at;
  const device::Span& m_got_at;
  const ToleranceOverride& m_tolerance;
  OutputCheck m_check;
};

}  // namespace

Result<OutputNode> parse_output(const nlohmann::json& described) {
  try {
    return parse_node(described, 0);
  } catch (const std::exception& error) {
    return fail(Outcome::internal_error, fmt::format("a malformed description of a result: {}", error.what()));
  }
}

std::vector<OutputLeaf> tensors_of(const OutputNode& root) {
  std::vector<OutputLeaf> leaves;
  collect(root, "output", leaves);
  return leaves;
}

std::optional<std::uint64_t> bytes_in_full(const OutputNode& root) {
  std::uint64_t total = 0;
  for (OutputLeaf const& leaf : tensors_of(root)) {
    auto const bytes = device::extent_bytes(dense_strides(*leaf.node->tensor));
    if (!bytes || *bytes > std::numeric_limits<std::uint64_t>::max() - total - alignment) return std::nullopt;
    total += (*bytes + alignment - 1) / alignment * alignment;
  }
  return total;
}

Result<OutputCheck> check_output(device::Backend& backend, const OutputNode& expected, const device::Span& expected_at,
                                 const OutputNode& got, const device::Span& got_at,
                                 const ToleranceOverride& tolerance) {
  return Checker(backend, expected_at, got_at, tolerance).check(expected, got);
}

}  // namespace cuda_agent::judge
