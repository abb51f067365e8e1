#include "selftest/selection.hpp"

#include <gtest/gtest.h>

namespace cuda_agent::selftest {

namespace {

Case exploit(const std::string& name, const std::string& row, const std::string& layer, const std::string& twin) {
  Case one;
  one.name = "exploits/" + name;
  one.folder = "/cases/exploits/" + name;
  one.row = row;
  one.layer = layer;
  one.honest_twin = twin;
  return one;
}

Case honest(const std::string& name) {
  Case one;
  one.kind = Kind::honest;
  one.name = "honest/" + name;
  one.folder = "/cases/honest/" + name;
  one.row = "Honest";
  return one;
}

std::vector<std::string> names(const std::vector<Case>& cases) {
  std::vector<std::string> result;
  for (auto const& one : cases) result.push_back(one.name);
  return result;
}

using Names = std::vector<std::string>;

}  // namespace

TEST(Matching, TakesNamesWithAndWithoutTheirFolder) {
  std::vector<Case> const cases{exploit("zeros", "", "", ""), exploit("steps", "", "", ""), honest("steps")};
  EXPECT_EQ(names(matching(cases, "*")).size(), 3U);
  EXPECT_EQ(names(matching(cases, "zer*")), Names{"exploits/zeros"});
  EXPECT_EQ(names(matching(cases, "steps")), (Names{"exploits/steps", "honest/steps"}));
  EXPECT_EQ(names(matching(cases, "honest/*")), Names{"honest/steps"});
  EXPECT_TRUE(matching(cases, "none").empty());
}

TEST(Repeated, WhatIsLeftOutIsSoOnce) {
  auto gpu = exploit("gpu", "", "", "");
  gpu.needs_cuda = true;
  std::vector<Case> const cases{honest("a"), gpu};
  EXPECT_EQ(names(repeated(cases, 1, false)), (Names{"honest/a", "exploits/gpu"}));
  EXPECT_EQ(names(repeated(cases, 3, false)), (Names{"honest/a", "exploits/gpu", "honest/a", "honest/a"}));
  EXPECT_EQ(repeated(cases, 3, true).size(), 6U);
}

TEST(Quick, TakesOneOfEachKindAndItsTwin) {
  auto variant = exploit("a", "Output: variant", "values", "x");
  variant.variant_of = "b";
  auto gap = exploit("b", "Output: gap", "values", "x");
  gap.gap = "nobody looks";
  auto cuda = exploit("c", "Output: on a GPU", "values", "gpu_twin");
  cuda.needs_cuda = true;
  std::vector<Case> const cases{variant,
                                gap,
                                cuda,
                                exploit("d", "Output: first", "values", "plain"),
                                exploit("e", "Output: second", "values", "words"),
                                exploit("f", "Output: other layer", "seal", "plain"),
                                exploit("g", "Clock: other kind", "seal", "steps"),
                                honest("gpu_twin"),
                                honest("plain"),
                                honest("steps"),
                                honest("words")};
  EXPECT_EQ(names(quick(cases, false)),
            (Names{"exploits/d", "exploits/f", "exploits/g", "honest/plain", "honest/steps"}));
  EXPECT_EQ(names(quick(cases, true)),
            (Names{"exploits/c", "exploits/f", "exploits/g", "honest/gpu_twin", "honest/plain", "honest/steps"}));
}

}  // namespace cuda_agent::selftest
