#include "build/diagnostics.hpp"

#include <gtest/gtest.h>

#include "unit/build/sample.hpp"

namespace cuda_agent::build {
namespace {

using test::captured;

void expect_error(const std::string& file, const std::string& phase, const std::string& description) {
  auto const diagnostics = parse_diagnostics(captured(file));
  auto const* const error = first_error(diagnostics);
  ASSERT_NE(error, nullptr) << file;
  EXPECT_EQ(error->phase, phase) << file;
  EXPECT_EQ(describe(*error, "?"), description) << file;
}

TEST(Diagnostics, OfHostCompilers) {
  expect_error("gcc_errors.txt", "compile",
               "kernels/bad.cpp:4:34: no matching function for call to 'push_back(const char [2])'");
  expect_error("gcc_missing_header.txt", "compile", "kernels/bad2.cpp:1:10: missing.h: No such file or directory");
  expect_error("clang_errors.txt", "compile",
               "kernels/bad.cpp:4:25: no matching member function for call to 'push_back'");
  expect_error("as_error.txt", "assemble", "kernels/asm.cpp:1: no such instruction: `no.such.thing %eax'");
  expect_error("gcc_out_of_memory.txt", "compile",
               "?: out of memory allocating 2097152 bytes after a total of 11239424 bytes");
}

TEST(Diagnostics, KeepSeverities) {
  int errors = 0;
  int warnings = 0;
  int notes = 0;
  for (auto const& diagnostic : parse_diagnostics(captured("gcc_errors.txt"))) {
    errors += diagnostic.severity == "error";
    warnings += diagnostic.severity == "warning";
    notes += diagnostic.severity == "note";
  }
  EXPECT_EQ(errors, 4);
  EXPECT_EQ(warnings, 1);
  EXPECT_EQ(notes, 4);
}

TEST(Diagnostics, OfNvcc) {
  expect_error("nvcc_errors.txt", "compile", "kernels/bad.cu:4: identifier \"undefined_name\" is undefined");
  expect_error("nvcc_missing_header.txt", "compile", "kernels/bad2.cu:1:10: missing.h: No such file or directory");
  expect_error("nvcc_refused_architecture.txt", "compile", "?: Unsupported gpu architecture 'sm_70'");
}

TEST(Diagnostics, AnErrorOfCudafeAtTheEndOfTheSourceIsOne) {
  auto const errors = parse_diagnostics("At end of source: error: expected a \"}\"\n\n1 error detected in …\n");
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].severity, "error");
  EXPECT_EQ(errors[0].message, "expected a \"}\" at the end of the source");
}

TEST(Diagnostics, NvccsCaretGivesTheColumnWhereTheSourceLineIsShownAsItIs) {
  auto const errors = parse_diagnostics(captured("nvcc_errors.txt"), [](const std::string&, int line) {
    return std::string(line == 4 ? "  x[0] = undefined_name + 1" : "}");
  });
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0].column, 10);
  EXPECT_EQ(errors[1].line, 5);
  EXPECT_EQ(errors[1].column, 1);
  auto const warnings = parse_diagnostics(captured("nvcc_warning.txt"), [](const std::string&, int) {
    return std::string("__global__ void k(float* x) { int unused = 3; x[0] = 1; }");
  });
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(warnings[0].severity, "warning");
  EXPECT_EQ(warnings[0].message, "#177-D: variable \"unused\" was declared but never referenced");
  EXPECT_EQ(warnings[0].column, 0);  // behind the expanded __global__
}

TEST(Diagnostics, AMacroBehindNvccsCaretDoesNotMatter) {
  auto const errors = parse_diagnostics(
      "kernels/a.cu(14): error: expected a \";\"\n"
      "  __attribute__((global)) void f()\n"
      "  ^\n",
      [](const std::string&, int) { return std::string("__global__ void f()"); });
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0].column, 1);
}

TEST(Diagnostics, OfPtxas) {
  expect_error("ptxas_errors.txt", "assemble", "?: Unknown modifier '.an' (PTX line 53)");
  EXPECT_TRUE(parse_diagnostics(captured("ptxas_verbose.txt")).empty());
}

TEST(Diagnostics, OfLinkers) {
  for (const char* file : {"ld_duplicate.txt", "lld_duplicate.txt", "mold_duplicate.txt"}) {
    expect_error(file, "link", "l2.cpp: multiple definition of dup(); first defined in l1.cpp");
  }
  expect_error("ld_undefined.txt", "link", "l1.cpp: undefined symbol foo(int)");
  expect_error("mold_undefined.txt", "link", "?: undefined symbol: foo(int)");
}

TEST(Diagnostics, EscapeWhatASourceCouldSmuggleIn) {
  auto const diagnostics = parse_diagnostics("kernels/a.cpp:1:2: error: #error \x1b[2J\xff\n");
  ASSERT_EQ(diagnostics.size(), 1U);
  EXPECT_EQ(diagnostics[0].message, "#error \\x1b[2J\\xff");
}

TEST(Diagnostics, SurviveVeryLongLines) {
  EXPECT_EQ(parse_diagnostics("kernels/a.cpp:1:2: error: " + std::string(2'000'000, 'x')).size(), 1U);
}

TEST(EnvironmentFailure, IsSeenInTheToolsOwnWords) {
  EXPECT_NE(environment_failure(captured("gcc_killed.txt")).find("killed"), std::string::npos);
  for (const char* file : {"gcc_disk_full.txt", "gcc_disk_full_temporary.txt", "nvcc_disk_full.txt"}) {
    EXPECT_NE(environment_failure(captured(file)).find("disk full"), std::string::npos) << file;
  }
}

TEST(EnvironmentFailure, CannotBeFeignedByASource) {
  for (const char* line :
       {"kernels/a.cpp:1:2: error: #error No space left on device",
        "kernels/a.cpp:1:10: fatal error: error writing to x: No space left on device: No such file or directory",
        "kernels/a.cpp:1: Error: No space left on device",
        "kernels/a.cu(3): error: #error directive: nvcc fatal : No space left on device",
        "  g++: fatal error: Killed signal terminated program cc1plus"}) {
    EXPECT_EQ(environment_failure(line), "") << line;
  }
  for (const char* file : {"gcc_errors.txt", "nvcc_errors.txt", "ptxas_errors.txt", "mold_duplicate.txt"}) {
    EXPECT_EQ(environment_failure(captured(file)), "") << file;
  }
}

}  // namespace
}  // namespace cuda_agent::build
