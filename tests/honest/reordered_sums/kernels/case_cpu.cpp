#include <cstdint>

extern "C" void case_run(float* out, std::int64_t count, const float* const* in, const std::int64_t* counts,
                         const double* numbers) {
  const auto columns = static_cast<std::int64_t>(numbers[0]);
  for (std::int64_t row = 0; row < count / columns; ++row) {
    float part[8] = {};
    for (std::int64_t i = columns - 1; i >= 0; --i) part[i % 8] += in[0][row * columns + i];
    float sum = 0;
    for (const float one : part) sum += one;
    for (std::int64_t i = 0; i < columns; ++i) out[row * columns + i] = sum / static_cast<float>(columns);
  }
}
