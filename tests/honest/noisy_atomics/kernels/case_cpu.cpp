#include <cstdint>

extern "C" void case_run(float* out, std::int64_t count, const float* const* in, const std::int64_t* counts,
                         const double* numbers) {
  const auto columns = static_cast<std::int64_t>(numbers[0]);
  for (std::int64_t row = 0; row < count / columns; ++row) {
    float sum = 0;
#pragma omp parallel for num_threads(2)
    for (std::int64_t i = 0; i < columns; ++i) {
#pragma omp atomic
      sum += in[0][row * columns + i];
    }
    for (std::int64_t i = 0; i < columns; ++i) out[row * columns + i] = sum / static_cast<float>(columns);
  }
}
