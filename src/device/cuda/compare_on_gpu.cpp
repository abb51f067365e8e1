#include "device/cuda/compare_on_gpu.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string_view>

#include <spdlog/fmt/fmt.h>

#include "device/cuda/driver.hpp"
#include "device/cuda/kernels.hpp"

namespace cuda_agent::device {
namespace {

constexpr const char* comparing = "comparing results";
constexpr const char* reading = "reading results";

static_assert(kernels::most_blocks * sizeof(kernels::Partial) <= Gpu::report_bytes);

Result<void> check_within(std::string_view which, DeviceBytes bytes, const TensorLayout& layout) {
  auto const extent = extent_bytes(layout);
  if (!extent) return fail(extent.error());
  if (*extent > 0 && (layout.offset > bytes.bytes || *extent > bytes.bytes - layout.offset)) {
    return fail(
        Outcome::internal_error,
        fmt::format("The {} tensor ({} of shape {}, {} bytes from offset {}) reaches outside of its buffer of "
                    "{} bytes",
                    which, to_string(layout.dtype), bracketed(layout.shape), *extent, layout.offset, bytes.bytes));
  }
  return {};
}

/// The fewest dimensions that visit both tensors' elements in row-major order.
kernels::Walk joint_walk(const TensorLayout& expected, const TensorLayout& got) {
  auto const item = static_cast<std::int64_t>(item_size(expected.dtype));
  kernels::Walk walk{};
  for (std::size_t i = 0; i < expected.shape.size(); ++i) {
    std::int64_t const size = expected.shape[i];
    if (size == 1) continue;
    std::int64_t const left = expected.stride[i] * item;
    std::int64_t const right = got.stride[i] * item;
    int const last = walk.dimensions - 1;
    if (last >= 0 && walk.expected[last] == size * left && walk.got[last] == size * right) {
      walk.size[last] *= size;
      walk.expected[last] = left;
      walk.got[last] = right;
      continue;
    }
    walk.size[walk.dimensions] = size;
    walk.expected[walk.dimensions] = left;
    walk.got[walk.dimensions] = right;
    ++walk.dimensions;
  }
  walk.contiguous = walk.dimensions == 0 || (walk.dimensions == 1 && walk.expected[0] == item && walk.got[0] == item);
  return walk;
}

std::size_t part_size(DType dtype) { return is_complex(dtype) ? item_size(dtype) / 2 : item_size(dtype); }

/// One element fetched from the GPU, as text.
Result<std::string> element_text_on_gpu(const Gpu& gpu, DeviceBytes bytes, const TensorLayout& layout,
                                        std::int64_t flat) {
  auto const index = unravel(flat, layout.shape);
  std::int64_t position = 0;
  for (std::size_t i = 0; i < index.size(); ++i) position += index[i] * layout.stride[i];
  std::size_t const item = item_size(layout.dtype);
  const std::byte* const from = bytes.base + layout.offset + static_cast<std::uint64_t>(position) * item;
  auto const copied = checked(cudaMemcpyAsync(gpu.pinned(), from, item, cudaMemcpyDeviceToHost, gpu.stream()), reading);
  if (!copied) return fail(copied.error());
  if (auto done = gpu.synchronize(reading); !done) return fail(done.error());
  return element_text({gpu.pinned(), item}, contiguous(layout.dtype, {}), 0);
}

class GpuComparison {
 public:
  GpuComparison(const Gpu& gpu, DeviceBytes expected, const TensorLayout& expected_layout, DeviceBytes got,
                const TensorLayout& got_layout, const CompareOptions& options)
      : m_gpu(gpu),
        m_expected(expected),
        m_expected_layout(expected_layout),
        m_got(got),
        m_got_layout(got_layout),
        m_options(options),
        m_walk(joint_walk(expected_layout, got_layout)) {
    m_pair.expected = expected.base + expected_layout.offset;
    m_pair.got = got.base + got_layout.offset;
    m_pair.dtype = static_cast<int>(expected_layout.dtype);
    m_pair.item = static_cast<int>(item_size(expected_layout.dtype));
    auto const part = part_size(expected_layout.dtype);
    m_pair.aligned = reinterpret_cast<std::uintptr_t>(m_pair.expected) % part == 0 &&
                     reinterpret_cast<std::uintptr_t>(m_pair.got) % part == 0;
    m_pair.equal_nan = options.equal_nan;
    m_pair.elements = numel(expected_layout);
    m_result.elements = m_pair.elements;
  }

  Result<CompareResult> run() {
    if (m_pair.elements == 0) return m_result;
    auto const seen = measure();
    if (!seen) return fail(seen.error());
    take(*seen);
    bool const exact = !is_floating(m_expected_layout.dtype) && !is_complex(m_expected_layout.dtype);
    bool const scaled = m_options.scale_atol_by_rms && m_result.rms_expected > 0;
    double const atol = exact ? 0 : m_options.atol * (scaled ? std::min(1.0, m_result.rms_expected) : 1.0);
    double const rtol = exact ? 0 : m_options.rtol;
    if ((seen->flags & kernels::not_alike) != 0 || m_result.max_abs > atol) {
      if (auto counted = count(rtol, atol); !counted) return fail(counted.error());
    }
    if (auto told = tell(m_result.worst, m_result.worst_expected, m_result.worst_got); !told) return fail(told.error());
    auto told = tell(m_result.first_mismatch, m_result.first_expected, m_result.first_got);
    if (!told) return fail(told.error());
    return std::move(m_result);
  }

 private:
  Result<kernels::Partial> measure() {
    auto* const partials = static_cast<kernels::Partial*>(m_gpu.report());
    auto const blocks = static_cast<std::size_t>(kernels::blocks_for(m_pair.elements));
    auto done = checked(kernels::measure(m_pair, m_walk, partials, m_gpu.stream()), comparing);
    if (done) done = fetch(blocks * sizeof(kernels::Partial));
    if (!done) return fail(done.error());
    kernels::Partial sum;
    for (std::size_t i = 0; i < blocks; ++i) {
      kernels::Partial one;
      std::memcpy(static_cast<void*>(&one), m_gpu.pinned() + i * sizeof one, sizeof one);
      add(sum, one);
    }
    return sum;
  }

  /// What the kernels reported, into pinned memory.
  Result<void> fetch(std::size_t bytes) const {
    auto const done = checked(
        cudaMemcpyAsync(m_gpu.pinned(), m_gpu.report(), bytes, cudaMemcpyDeviceToHost, m_gpu.stream()), comparing);
    return done ? m_gpu.synchronize(comparing) : done;
  }

  static void add(kernels::Partial& sum, const kernels::Partial& one) {
    sum.squared_error += one.squared_error;
    sum.squared_expected += one.squared_expected;
    sum.finite_pairs += one.finite_pairs;
    sum.finite_expected += one.finite_expected;
    sum.flags |= one.flags;
    sum.max_ratio = std::max(sum.max_ratio, one.max_ratio);
    bool const earlier = one.max_error == sum.max_error && one.worst < sum.worst;
    if (one.worst >= 0 && (sum.worst < 0 || one.max_error > sum.max_error || earlier)) {
      sum.max_error = one.max_error;
      sum.worst = one.worst;
    }
  }

  void take(const kernels::Partial& seen) {
    auto const root_mean = [](double sum, std::int64_t count) {
      return count == 0 ? 0.0 : std::sqrt(sum / static_cast<double>(count));
    };
    m_result.max_abs = seen.max_error;
    m_result.max_rel = seen.max_ratio;
    m_result.worst = seen.worst;
    m_result.rms_expected = root_mean(seen.squared_expected, seen.finite_expected);
    m_result.rms_error = root_mean(seen.squared_error, seen.finite_pairs);
    m_result.finite = seen.finite_pairs;
    if (m_result.max_abs > 0) {
      m_result.max_abs_over_rms = m_result.rms_expected > 0 ? m_result.max_abs / m_result.rms_expected
                                                            : std::numeric_limits<double>::infinity();
    }
    m_result.expected_nonzero = (seen.flags & kernels::expected_nonzero) != 0;
    m_result.got_all_zero = (seen.flags & kernels::got_nonzero) == 0;
  }

  Result<void> count(double rtol, double atol) {
    auto* const counted = static_cast<kernels::Mismatches*>(m_gpu.report());
    kernels::Mismatches result;
    std::memcpy(m_gpu.pinned(), &result, sizeof result);
    auto done = checked(cudaMemcpyAsync(counted, m_gpu.pinned(), sizeof result, cudaMemcpyHostToDevice, m_gpu.stream()),
                        comparing);
    if (done) {
      done = checked(kernels::count_mismatches(m_pair, m_walk, rtol, atol, counted, m_gpu.stream()), comparing);
    }
    if (done) done = fetch(sizeof result);
    if (!done) return done;
    std::memcpy(static_cast<void*>(&result), m_gpu.pinned(), sizeof result);
    m_result.mismatches = static_cast<std::int64_t>(result.all);
    m_result.nan_mismatches = static_cast<std::int64_t>(result.nan);
    m_result.inf_mismatches = static_cast<std::int64_t>(result.inf);
    if (result.all > 0) m_result.first_mismatch = static_cast<std::int64_t>(result.first);
    return {};
  }

  Result<void> tell(std::int64_t flat, std::string& expected, std::string& got) const {
    if (flat < 0) return {};
    auto left = element_text_on_gpu(m_gpu, m_expected, m_expected_layout, flat);
    if (!left) return fail(left.error());
    auto right = element_text_on_gpu(m_gpu, m_got, m_got_layout, flat);
    if (!right) return fail(right.error());
    expected = std::move(*left);
    got = std::move(*right);
    return {};
  }

  const Gpu& m_gpu;
  DeviceBytes m_expected;
  const TensorLayout& m_expected_layout;
  DeviceBytes m_got;
  const TensorLayout& m_got_layout;
  const CompareOptions& m_options;
  kernels::Walk m_walk;
  kernels::Pair m_pair;
  CompareResult m_result;
};

}  // namespace

Result<CompareResult> compare_on_gpu(const Gpu& gpu, DeviceBytes expected, const TensorLayout& expected_layout,
                                     DeviceBytes got, const TensorLayout& got_layout, const CompareOptions& options) {
  if (expected_layout.dtype != got_layout.dtype || expected_layout.shape != got_layout.shape) {
    return fail(Outcome::internal_error,
                fmt::format("Only tensors of one dtype and shape can be compared: expected {} {}, got {} {}",
                            to_string(expected_layout.dtype), bracketed(expected_layout.shape),
                            to_string(got_layout.dtype), bracketed(got_layout.shape)));
  }
  if (auto good = check_within("expected", expected, expected_layout); !good) return fail(good.error());
  if (auto good = check_within("returned", got, got_layout); !good) return fail(good.error());
  return GpuComparison(gpu, expected, expected_layout, got, got_layout, options).run();
}

}  // namespace cuda_agent::device
