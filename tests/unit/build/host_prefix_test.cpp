#include "build/host_prefix.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::build {
namespace {

const std::string headers =
    "#pragma GCC diagnostic ignored \"-Wattributes\"\n#include \"crt/host_runtime.h\"\n" + []() {
      std::string text = "# 1 \"/usr/include/c++/vector\" 3\n";
      while (text.size() < 300'000) text += "typedef int type; \n";
      return text;
    }();
const std::string own = "# 10 \"kernels/a.cu\"\nint f() { return 1; }\n";

TEST(HostPrefix, TheHeadersAreThePrefixAndTheSourceIsTheRest) {
  auto const split = split_host_text("# 1 \"kernels/a.cu\"\n" + headers + own);
  ASSERT_TRUE(split);
  EXPECT_EQ(split->prefix, headers);
  EXPECT_EQ(split->rest, "#pragma GCC diagnostic ignored \"-Wattributes\"\n" + own);
}

TEST(HostPrefix, SourcesOfAnyNameShareAPrefix) {
  auto const a = split_host_text("# 1 \"kernels/a.cu\"\n" + headers + own);
  auto const b = split_host_text("# 1 \"kernels/other.cu\"\n" + headers + "# 3 \"kernels/other.cu\"\nint g();\n");
  ASSERT_TRUE(a);
  ASSERT_TRUE(b);
  EXPECT_EQ(a->prefix, b->prefix);
}

TEST(HostPrefix, AHeaderOfTheCandidatesOwnEndsThePrefix) {
  std::string const mine = "# 1 \"kernels/mine.cuh\" 1\nint mine();\n";
  auto const split = split_host_text("# 1 \"kernels/a.cu\"\n" + headers + mine + headers + own);
  ASSERT_TRUE(split);
  EXPECT_EQ(split->prefix, headers);
}

TEST(HostPrefix, AnotherIncludeInTheTextMakesItUnfit) {
  for (const char* line : {"#include \"kernels/x.h\"\n", "# include <x>\n", "#if __has_include(<x>)\n"}) {
    EXPECT_FALSE(split_host_text("# 1 \"kernels/a.cu\"\n" + headers + line + own)) << line;
  }
}

TEST(HostPrefix, FewHeadersAreNotWorthIt) {
  EXPECT_FALSE(split_host_text("# 1 \"kernels/a.cu\"\nint few;\n" + own));
  EXPECT_FALSE(split_host_text(""));
  EXPECT_FALSE(split_host_text(headers));
}

}  // namespace
}  // namespace cuda_agent::build
