#include <cstdint>

extern "C" void case_run(float* out, std::int64_t count, const float* const* in, const std::int64_t* counts,
                         const double* numbers) {
  // No fused multiply-add: eager rounds after each operation.
  for (std::int64_t i = 0; i < count; ++i) {
    volatile float product = in[0][i] * 3;
    out[i] = (product - 1) * in[0][i];
  }
}
