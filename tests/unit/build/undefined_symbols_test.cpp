#include "build/undefined_symbols.hpp"

#include <gtest/gtest.h>

#include "unit/build/sample.hpp"

namespace cuda_agent::build {
namespace {

namespace fs = std::filesystem;

TEST(UndefinedSymbols, AreNamedWithTheirUsers) {
  auto const folder = util::TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-elf-");
  ASSERT_TRUE(folder);
  fs::path const root = folder->path();
  std::string const user = "int nowhere(int); int here(int); int use() { return nowhere(1) + here(2); }";
  test::compile("int here(int x) { return x; }", root / "libhere.so", "-shared");
  test::compile(user, root / "user.o", "-c");
  test::compile(user, root / "user.so", "-shared", {"-L" + root.string(), "-lhere"});
  auto const undefined = find_undefined_symbols(root / "user.so", {{"kernels/user.cpp", root / "user.o"}}, {root});
  ASSERT_TRUE(undefined) << undefined.error().message;
  ASSERT_EQ(undefined->size(), 1U);
  EXPECT_EQ(undefined->front().name, "nowhere(int)");
  EXPECT_EQ(undefined->front().used_by, (std::vector<std::string>{"kernels/user.cpp"}));
}

TEST(UndefinedSymbols, PythonAndTheCLibraryAreThere) {
  auto const folder = util::TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-elf-");
  ASSERT_TRUE(folder);
  fs::path const library = folder->path() / "user.so";
  test::compile(
      "#include <cmath>\n#include <iostream>\nextern \"C\" void Py_IncRef(void*);\n"
      "void use(double x) { Py_IncRef(nullptr); std::cout << std::sin(x) << std::endl; }",
      library, "-shared");
  auto const undefined = find_undefined_symbols(library, {}, {});
  ASSERT_TRUE(undefined) << undefined.error().message;
  EXPECT_TRUE(undefined->empty()) << undefined->front().name;
}

}  // namespace
}  // namespace cuda_agent::build
