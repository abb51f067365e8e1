#include "build/dependencies.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::build {
namespace {

using Files = std::vector<std::string>;

TEST(Dependencies, OfOneRuleOverSeveralLines) {
  EXPECT_EQ(
      parse_dependencies("object.o: kernels/a.cpp \\\n kernels/../binding_registry.h \\\n  /usr/include/stdio.h\n"),
      (Files{"kernels/a.cpp", "kernels/../binding_registry.h", "/usr/include/stdio.h"}));
}

TEST(Dependencies, NvccPutsTheColonApart) {
  EXPECT_EQ(parse_dependencies("/out/object.o : kernels/a.cu \\\n    /usr/include/x.h\n"),
            (Files{"kernels/a.cu", "/usr/include/x.h"}));
}

TEST(Dependencies, EscapesAreUndone) {
  EXPECT_EQ(parse_dependencies("a.o: kernels/with\\ space.h kernels/\\#1.h kernels/$$x.h\n"),
            (Files{"kernels/with space.h", "kernels/#1.h", "kernels/$x.h"}));
}

TEST(Dependencies, EachOnceAndOnlyTheFirstRule) {
  EXPECT_EQ(parse_dependencies("a.o: x.h y.h x.h\n\nx.h:\n\ny.h:\n"), (Files{"x.h", "y.h"}));
}

TEST(Dependencies, OfNothing) {
  EXPECT_TRUE(parse_dependencies("").empty());
  EXPECT_TRUE(parse_dependencies("a.o:").empty());
  EXPECT_TRUE(parse_dependencies("\\").empty());
}

}  // namespace
}  // namespace cuda_agent::build
