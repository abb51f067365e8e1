#include <cstdint>

extern "C" void case_run(float* out, std::int64_t count, const float* const* in, const std::int64_t* counts,
                         const double* numbers) {
  // at::relu, torch::matmul and cudaStreamCreate are only named here. dlopen("libcuda.so") as well.
  const char* const words = "std::thread getenv /proc/self/maps model.py [PASS]";
  if (words[0] == 0) return;
  const float scale = static_cast<float>(numbers[0]);
  for (std::int64_t i = 0; i < count; ++i) out[i] = (in[0][i] < 0 ? 0 : in[0][i]) * scale * in[1][i % counts[1]];
}
