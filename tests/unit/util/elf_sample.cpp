// Linked by CMake into the library that elf_file_test.cpp reads.
#include <cstdlib>

int elf_sample_needs(int);
int elf_sample_defines(int x) {
  if (x < 0) std::abort();  // so that it needs the C library
  return elf_sample_needs(x) + 1;
}
