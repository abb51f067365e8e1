#include "build/extension.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "exec/sandbox.hpp"
#include "unit/build/sample.hpp"
#include "util/elf_file.hpp"

namespace cuda_agent::build {
namespace {

namespace fs = std::filesystem;
using test::entry;
using test::Sample;
using test::Variable;

#define ASSERT_BUILT(result) ASSERT_FALSE((result).error) << (result).error->message << "\n" << (result).error->detail

int compiled(const ExtensionResult& result) {
  int count = 0;
  for (auto const& object : result.report.objects) count += !object.cached;
  return count;
}

TEST(Extension, IsBuiltAndTheSecondTimeNothingIsCompiled) {
  Sample const sample;
  auto const first = sample.build(Target::cpu);
  ASSERT_BUILT(first);
  EXPECT_EQ(first.extension, sample.root() / "output" / "cuda_extension.so");
  EXPECT_TRUE(fs::exists(first.extension));
  EXPECT_EQ(first.report.device, "cpu");
  EXPECT_EQ(first.report.architecture_from, "host");
  EXPECT_EQ(first.report.objects.size(), 5U);
  EXPECT_EQ(compiled(first), 5);
  auto const second = sample.build(Target::cpu);
  ASSERT_BUILT(second);
  EXPECT_EQ(compiled(second), 0);
  EXPECT_EQ(second.report.extension_sha256, first.report.extension_sha256);
}

TEST(Extension, LeavesNothingElseInTheOutputFolder) {
  Sample const sample;
  ASSERT_BUILT(sample.build(Target::cpu));
  int files = 0;
  for ([[maybe_unused]] auto const& item : fs::directory_iterator(sample.root() / "output")) ++files;
  EXPECT_EQ(files, 1);
}

TEST(Extension, AnEditedHeaderRecompilesWhatIncludesItAndNothingElse) {
  Sample const sample;
  ASSERT_BUILT(sample.build(Target::cpu));
  sample.write("workspace/kernels/scale.hpp", "int scale(int x);\ninline constexpr int factor = 3;\n");
  auto const edited = sample.build(Target::cpu);
  ASSERT_BUILT(edited);
  EXPECT_FALSE(entry(edited, "kernels/scale_cpu.cpp").cached);
  EXPECT_TRUE(entry(edited, "kernels/add_cpu.cpp").cached);
  EXPECT_TRUE(entry(edited, "kernels/scale_binding.cpp").cached);
  EXPECT_TRUE(entry(edited, "binding.cpp").cached);
  EXPECT_FALSE(entry(edited, "cuda_extension").cached);
  sample.write("workspace/kernels/scale.hpp", "int scale(int x);\ninline constexpr int factor = 2;\n");
  EXPECT_EQ(compiled(sample.build(Target::cpu)), 0);
}

TEST(Extension, TheCacheDoesNotDependOnWhereTheWorkspaceLies) {
  Sample const sample;
  ASSERT_BUILT(sample.build(Target::cpu));
  fs::rename(sample.workspace(), sample.root() / "elsewhere");
  auto request = sample.request(Target::cpu);
  request.snapshot = sample.root() / "elsewhere";
  request.output = sample.root() / "other output";
  EXPECT_EQ(compiled(sample.build(request)), 0);
}

TEST(Extension, ASyntaxErrorNamesFileLineAndColumnAndIsNotCached) {
  Sample const sample;
  sample.write("workspace/kernels/add_cpu.cpp", "int add(int x) {\n  return x + 1\n}\n");
  for (int i = 0; i < 2; ++i) {
    auto const result = sample.build(Target::cpu);
    ASSERT_TRUE(result.error);
    EXPECT_EQ(result.error->outcome, Outcome::compile_error);
    EXPECT_EQ(result.error->fault, Fault::candidate);
    EXPECT_EQ(result.error->message.rfind("kernels/add_cpu.cpp:2:15: expected ';'", 0), 0U) << result.error->message;
    EXPECT_TRUE(result.extension.empty());
    auto const object = entry(result, "kernels/add_cpu.cpp");
    EXPECT_FALSE(object.cached);
    ASSERT_FALSE(object.diagnostics.empty());
    EXPECT_EQ(object.diagnostics[0].line, 2);
    if (i == 0) RecordProperty("seconds", std::to_string(result.report.seconds));
  }
  sample.write("workspace/kernels/add_cpu.cpp", "int add(int x) {\n  return x + 1;\n}\n");
  ASSERT_BUILT(sample.build(Target::cpu));
}

TEST(Extension, WarningsAreShownAgainFromTheCache) {
  Sample const sample;
  sample.write("workspace/kernels/add_cpu.cpp", "#warning mind the gap\nint add(int x) { return x; }\n");
  for (int i = 0; i < 2; ++i) {
    auto const result = sample.build(Target::cpu);
    ASSERT_BUILT(result);
    auto const object = entry(result, "kernels/add_cpu.cpp");
    EXPECT_EQ(object.cached, i == 1);
    ASSERT_EQ(object.diagnostics.size(), 1U);
    EXPECT_EQ(object.diagnostics[0].severity, "warning");
    EXPECT_EQ(object.diagnostics[0].line, 1);
  }
}

TEST(Extension, AnUndefinedSymbolIsNamedWithItsUser) {
  Sample const sample;
  sample.remove("workspace/kernels/scale_cpu.cpp");
  auto const result = sample.build(Target::cpu);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->outcome, Outcome::compile_error);
  EXPECT_NE(result.error->message.find("undefined symbol: scale(int)"), std::string::npos) << result.error->message;
  EXPECT_NE(result.error->message.find("kernels/scale_binding.cpp"), std::string::npos);
  EXPECT_EQ(entry(result, "cuda_extension").diagnostics.at(0).phase, "link");
  EXPECT_FALSE(fs::exists(sample.root() / "output" / "cuda_extension.so"));
}

TEST(Extension, ASymbolDefinedTwiceIsNamedWithBothFiles) {
  Sample const sample;
  sample.write("workspace/kernels/twice_cpu.cpp", "int add(int x) { return x; }\n");
  auto const result = sample.build(Target::cpu);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->outcome, Outcome::compile_error);
  for (const char* word : {"add", "kernels/add_cpu.cpp", "kernels/twice_cpu.cpp"}) {
    EXPECT_NE(result.error->message.find(word), std::string::npos) << result.error->message;
  }
}

TEST(Extension, WithoutARegistrationItSaysWhichCallIsMissing) {
  Sample const sample;
  sample.remove("workspace/kernels/scale_binding.cpp");
  auto const result = sample.build(Target::cpu);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->outcome, Outcome::compile_error);
  EXPECT_NE(result.error->message.find("REGISTER_BINDING"), std::string::npos);
}

TEST(Extension, CudaSourcesAloneCannotRunOnTheCpu) {
  Sample const sample;
  fs::remove_all(sample.workspace() / "kernels");
  sample.write("workspace/kernels/scale.cu", "__global__ void k() {}\n");
  auto const result = sample.build(Target::cpu);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->outcome, Outcome::compile_error);
  EXPECT_NE(result.error->message.find("only C++ kernels"), std::string::npos);
  EXPECT_NE(result.error->hints.at(0).find("--device cuda"), std::string::npos);
}

TEST(Extension, NothingToCompileIsSaid) {
  Sample const sample;
  fs::remove_all(sample.workspace() / "kernels");
  auto const result = sample.build(Target::cpu);
  ASSERT_TRUE(result.error);
  EXPECT_NE(result.error->message.find("nothing to compile"), std::string::npos);
}

TEST(Extension, ACompilerThatTakesTooLongIsStoppedAndItsFileNamed) {
  Sample const sample;
  sample.write("workspace/kernels/deep_cpu.cpp",
               "template <class A, class B> struct P {};\n"
               "template <int N, class T> struct G { static constexpr long v = G<N - 1, P<T, int>>::v + G<N - 1, "
               "P<int, T>>::v; };\n"
               "template <class T> struct G<0, T> { static constexpr long v = 1; };\n"
               "long deep() { return G<26, int>::v; }\n");
  auto request = sample.request(Target::cpu);
  request.object_timeout = 2;
  auto const result = sample.build(request);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->outcome, Outcome::timeout);
  EXPECT_EQ(result.error->fault, Fault::candidate);
  EXPECT_NE(result.error->message.find("kernels/deep_cpu.cpp"), std::string::npos) << result.error->message;
  EXPECT_LT(result.report.seconds, 60);
}

TEST(Extension, ADamagedObjectInTheCacheIsMadeAgain) {
  Sample const sample;
  ASSERT_BUILT(sample.build(Target::cpu));
  int damaged = 0;
  for (auto const& item : fs::recursive_directory_iterator(sample.cache.root)) {
    if (!item.is_regular_file()) continue;
    std::ofstream(item.path(), std::ios::trunc) << "garbage";
    ++damaged;
  }
  EXPECT_GT(damaged, 10);
  auto const result = sample.build(Target::cpu);
  ASSERT_BUILT(result);
  EXPECT_EQ(compiled(result), 5);
}

TEST(Extension, TwoBuildsAtOnceShareACache) {
  Sample const sample;
  ExtensionResult results[2];
  {
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] {
        auto request = sample.request(Target::cpu);
        request.output = sample.root() / ("output" + std::to_string(i));
        results[i] = sample.build(request);
      });
    }
    for (auto& thread : threads) thread.join();
  }
  for (auto const& result : results) ASSERT_BUILT(result);
  EXPECT_EQ(compiled(sample.build(Target::cpu)), 0);
}

TEST(Extension, TheCallersVariablesDoNotReachTheCompiler) {
  Sample const sample;
  sample.write("outside/leak.h", "#define LEAK 1\n");
  sample.write("workspace/kernels/add_cpu.cpp", "#include <leak.h>\n");
  Variable const path("CPATH", (sample.root() / "outside").string());
  auto const result = sample.build(Target::cpu);
  ASSERT_TRUE(result.error);
  EXPECT_NE(result.error->message.find("leak.h"), std::string::npos);
}

TEST(Extension, TheCompilerSeesNothingButTheKernels) {
  if (!exec::probe_sandbox().bubblewrap) GTEST_SKIP() << exec::probe_sandbox().reason;
  Sample const sample;
  sample.write("workspace/model.py", "secret = 1\n");
  for (auto const& path : {sample.workspace() / "model.py", fs::path("../model.py")}) {
    sample.write("workspace/kernels/add_cpu.cpp", "asm(\".incbin \\\"" + path.string() + "\\\"\");\n");
    auto const result = sample.build(Target::cpu);
    ASSERT_TRUE(result.error) << path;
    EXPECT_EQ(result.error->outcome, Outcome::compile_error);
  }
}

TEST(Extension, AFailureOfTheJudgesOwnFileIsNotTheCandidates) {
  Sample const sample;
  sample.write("support/binding.cpp", "#include <not_installed.h>\n");
  auto const result = sample.build(Target::cpu);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->outcome, Outcome::environment_error);
  EXPECT_EQ(result.error->fault, Fault::environment);
}

/// A g++ of the sample's own: a shell script's text.
void use_compiler(Sample& sample, std::string_view text) {
  sample.write("compiler/moved-g++", text);
  auto const place = sample.root() / "compiler" / "moved-g++";
  fs::permissions(place, fs::perms::owner_all);
  Variable const cxx("CXX", place.string());
  auto const found = find_toolchain(false, util::Deadline::after(std::chrono::seconds(20)));
  ASSERT_TRUE(found) << found.error().message;
  sample.toolchain.host = found->host;
  sample.write("workspace/kernels/throws_cpu.cpp",
               "#include <stdexcept>\nvoid throws() { throw std::runtime_error(\"no\"); }\n");
}

bool needs_the_cxx_library(const fs::path& extension) {
  auto const needed = util::ElfFile::open(extension)->needed();
  return std::find(needed.begin(), needed.end(), "libstdc++.so.6") != needed.end();
}

TEST(Extension, ACompilerThatFindsTheCxxLibraryOnlyAsAnArchiveLinksTheSharedOne) {
  Sample sample;
  use_compiler(sample,
               "#!/bin/sh\ncase \"$1\" in -print-file-name=*) echo \"${1#*=}\"; exit;; esac\n"
               "exec g++ -static-libstdc++ \"$@\"\n");
  auto const built = sample.build(Target::cpu);
  ASSERT_BUILT(built);
  EXPECT_TRUE(needs_the_cxx_library(built.extension));
  EXPECT_FALSE(util::ElfFile::open(built.extension)->exports("__cxa_throw"));
}

TEST(Extension, ACompilerThatPutsTheCxxLibraryIntoTheExtensionIsToBlameForIt) {
  Sample sample;
  use_compiler(sample, "#!/bin/sh\nexec g++ -static-libstdc++ \"$@\"\n");
  auto const built = sample.build(Target::cpu);
  ASSERT_TRUE(built.error);
  EXPECT_EQ(built.error->outcome, Outcome::environment_error);
  EXPECT_NE(built.error->message.find("links the C++ library into the extension"), std::string::npos)
      << built.error->message;
  EXPECT_NE(built.error->message.find((sample.root() / "compiler" / "moved-g++").string()), std::string::npos);
}

TEST(Extension, FilesWithSpacesInTheirNames) {
  Sample const sample;
  sample.write("workspace/kernels/my header.hpp", "#define ONE 1\n");
  sample.write("workspace/kernels/add it_cpu.cpp", "#include \"my header.hpp\"\nint add2(int x) { return x + ONE; }\n");
  ASSERT_BUILT(sample.build(Target::cpu));
  sample.write("workspace/kernels/my header.hpp", "#define ONE 2\n");
  EXPECT_FALSE(entry(sample.build(Target::cpu), "kernels/add it_cpu.cpp").cached);
}

}  // namespace
}  // namespace cuda_agent::build
