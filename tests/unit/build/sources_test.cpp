#include "build/sources.hpp"

#include <gtest/gtest.h>

#include "unit/build/sample.hpp"

namespace cuda_agent::build {
namespace {

std::vector<std::string> paths(const Sources& sources) {
  std::vector<std::string> names;
  for (auto const& source : sources.compiled) names.push_back(source.path);
  return names;
}

TEST(Sources, EachTargetTakesItsOwn) {
  test::Sample const sample;
  sample.write("workspace/kernels/scale.cu", "");
  sample.write("workspace/kernels/inner/deep.cu", "");
  auto const cpu = select_sources(sample.workspace(), Target::cpu);
  ASSERT_TRUE(cpu);
  EXPECT_EQ(paths(*cpu),
            (std::vector<std::string>{"kernels/add_cpu.cpp", "kernels/scale_binding.cpp", "kernels/scale_cpu.cpp"}));
  auto const cuda = select_sources(sample.workspace(), Target::cuda);
  ASSERT_TRUE(cuda);
  EXPECT_EQ(paths(*cuda),
            (std::vector<std::string>{"kernels/inner/deep.cu", "kernels/scale.cu", "kernels/scale_binding.cpp"}));
  EXPECT_EQ(cuda->compiled.back().kind, SourceKind::binding);
}

TEST(Sources, LinksAreNotFollowed) {
  test::Sample const sample;
  std::filesystem::create_symlink("/etc/hostname", sample.workspace() / "kernels" / "link.cpp");
  auto const sources = select_sources(sample.workspace(), Target::cpu);
  ASSERT_TRUE(sources);
  EXPECT_EQ(sources->compiled.size(), 3U);
}

TEST(Sources, CommentsGoAndTextInQuotesStays) {
  EXPECT_EQ(without_comments("a // b\nc /* d\n e */ f"), "a \nc   f");
  EXPECT_EQ(without_comments("\"// no\" 'x' '\\'' /**/"), "\"// no\" 'x' '\\''  ");
  EXPECT_EQ(without_comments("a /* never closed"), "a  ");
  EXPECT_EQ(without_comments("\"open\n// b"), "\"open\n");
}

TEST(Sources, ARegistrationInAHeaderCountsAndOneInACommentDoesNot) {
  test::Sample const sample;
  sample.write("workspace/kernels/scale_binding.cpp", "// REGISTER_BINDING(scale, go)\n");
  EXPECT_FALSE(select_sources(sample.workspace(), Target::cpu));
  sample.write("workspace/kernels/bind.hpp", "REGISTER_BINDING(scale, go);\n");
  EXPECT_TRUE(select_sources(sample.workspace(), Target::cpu));
}

}  // namespace
}  // namespace cuda_agent::build
