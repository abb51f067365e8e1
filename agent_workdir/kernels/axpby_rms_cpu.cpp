// out[row] = sqrt(mean over i of (alpha * a[row, i] + b[row, i])^2) on the CPU: the twin of axpby_rms.cu.
//
// Sixteen running sums a row: the compiler can keep them in vector registers without being allowed to reorder a
// floating-point sum, and short sums lose less than one long one.
#include <cmath>
#include <cstdint>

extern "C" void axpby_rms_run(float* out, const float* a, const float* b, float alpha, std::int64_t rows,
                              std::int64_t columns) {
  constexpr int kLanes = 16;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* row_a = a + row * columns;
    const float* row_b = b + row * columns;
    float sums[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const float v = alpha * row_a[i + lane] + row_b[i + lane];
        sums[lane] += v * v;
      }
    }
    float sum = 0.0f;
    for (; i < columns; ++i) {
      const float v = alpha * row_a[i] + row_b[i];
      sum += v * v;
    }
    for (float part : sums) sum += part;
    out[row] = std::sqrt(sum / static_cast<float>(columns));
  }
}
