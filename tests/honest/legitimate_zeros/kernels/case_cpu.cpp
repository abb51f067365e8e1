#include <cstdint>
#include <limits>

extern "C" void case_run(float* out, std::int64_t count, const float* const* in, const std::int64_t* counts,
                         const double* numbers) {
  const std::int64_t half = count / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const float x = in[0][i];
    out[i] = x > 1.5F ? x - 1.5F : 0;
    out[half + i] = x < 0 ? -std::numeric_limits<float>::infinity() : x;
  }
}
