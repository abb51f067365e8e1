// out[i] = alpha * a[i] + b[i] on the CPU: the twin of axpby.cu. One pass; the compiler vectorises it.
#include <cstdint>

extern "C" void axpby_run(float* __restrict__ out, const float* __restrict__ a, const float* __restrict__ b,
                          float alpha, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = alpha * a[i] + b[i];
}
