// What the split way makes is what nvcc makes. Needs nvcc and no GPU.
#include "build/split_nvcc.hpp"

#include <set>

#include <gtest/gtest.h>

#include "build/dependencies.hpp"
#include "build/diagnostics.hpp"
#include "build/flags.hpp"
#include "build/jobs.hpp"
#include "build/ptxas.hpp"
#include "unit/build/sample.hpp"
#include "util/environment.hpp"
#include "util/text.hpp"

namespace cuda_agent::build {
namespace {

namespace fs = std::filesystem;

using test::Sample;

struct Compiled {
  JobOutcome outcome;
  fs::path folder;
  fs::path object() const { return folder / "object.o"; }
};

class SplitNvccTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!m_sample.toolchain.nvcc) GTEST_SKIP() << "no nvcc here";
    if (m_sample.toolchain.nvcc->version.rfind("13.", 0) != 0) GTEST_SKIP() << "the steps of this nvcc are not known";
  }

  Flags flags() const { return nvcc_flags(Architecture{"90a", "--arch"}, m_sample.toolchain, m_sample.interpreter); }

  std::optional<SplitNvcc> open() const {
    return SplitNvcc::open(m_sample.cache, m_sample.toolchain, flags(),
                           util::Deadline::after(std::chrono::seconds(60)));
  }

  void make_room() {
    auto room =
        BuildRoom::make(m_sample.root() / "rooms", m_sample.workspace(), {}, m_sample.toolchain, m_sample.interpreter);
    ASSERT_TRUE(room) << room.error().message;
    m_room.emplace(std::move(*room));
  }

  // Both ways: nvcc's own first.
  std::vector<Compiled> compile(const std::vector<std::string>& sources, int parallel = 1) {
    std::vector<Job> jobs;
    std::vector<fs::path> folders;
    auto const split = open();
    EXPECT_TRUE(split);
    if (!split) return {};
    for (auto const& source : sources) {
      for (bool const plain : {true, false}) {
        auto const folder = m_room->make_output(std::to_string(m_count++));
        EXPECT_TRUE(folder);
        folders.push_back(*folder);
        Job job;
        job.label = source;
        job.timeout = 100;
        job.optional = true;
        job.command = [this, source, output = *folder] { return plain_command(source, output); };
        if (!plain) {
          job.start = [this, &split, source, parallel, output = *folder] {
            return split->start({*m_room, source, output, parallel, util::Deadline::after(std::chrono::seconds(100)),
                                 plain_command(source, output)});
          };
        }
        jobs.push_back(std::move(job));
      }
    }
    util::SilentProgress progress;
    auto const outcomes = run_jobs(jobs, 2, progress, util::Deadline::after(std::chrono::seconds(300)));
    std::vector<Compiled> compiled;
    for (std::size_t i = 0; i < outcomes.size(); ++i) compiled.push_back({outcomes[i], folders[i]});
    return compiled;
  }

  exec::Command plain_command(const std::string& source, const fs::path& output) const {
    auto const place = BuildRoom::output_place(output);
    Flags argv = {m_sample.toolchain.nvcc->executable.string()};
    for (auto const& flag : flags()) argv.push_back(flag);
    for (auto const& word : {std::string("-MD"), std::string("-MF"), m_room->seen(place, "dependencies.d").string(),
                             std::string("-c"), source, std::string("-o"), m_room->seen(place, "object.o").string()}) {
      argv.push_back(word);
    }
    return m_room->command(argv, output, {});
  }

  Sample m_sample;
  std::optional<BuildRoom> m_room;
  int m_count = 0;
};

std::string tool_output(const std::vector<std::string>& words) {
  auto const tool = util::find_executable(words.front());
  EXPECT_TRUE(tool) << words.front();
  exec::Command command;
  command.argv = words;
  command.argv.front() = tool ? tool->string() : "/nonexistent";
  command.env = {{"PATH", "/usr/bin:/bin"}};
  auto const done = exec::run(command, util::Deadline::after(std::chrono::seconds(60)));
  EXPECT_TRUE(done && done->status.ok()) << words.front();
  return done ? done->output : std::string();
}

std::string section(const fs::path& object, const std::string& name) {
  fs::path const file = object.string() + name;
  tool_output({"objcopy", "-O", "binary", "--set-section-flags", name + "=alloc", "--only-section=" + name,
               object.string(), file.string()});
  auto const content = util::read_file(file, 64U << 20U);
  EXPECT_TRUE(content) << name;
  return content ? *content : std::string();
}

// ptxas says how long it took.
std::string words_of(const Compiled& compiled) {
  std::string words;
  for (auto const& line : util::split_lines(compiled.outcome.output)) {
    if (line.find("Compile time") == std::string::npos) words += line + "\n";
  }
  return words;
}

std::set<std::string> dependencies_of(const Compiled& compiled) {
  std::set<std::string> files;
  for (auto const& name : SplitNvcc::dependency_files()) {
    auto const text = util::read_file(compiled.folder / name, 8U << 20U);
    if (!text) continue;
    for (auto const& file : parse_dependencies(*text)) files.insert(file);
  }
  return files;
}

bool was_compiled_as_a_whole(const Compiled& compiled) { return fs::exists(compiled.folder / "dependencies.d"); }

void expect_same(const Compiled& plain, const Compiled& split, const std::string& source) {
  SCOPED_TRACE(source);
  ASSERT_TRUE(plain.outcome.ok()) << plain.outcome.output;
  ASSERT_TRUE(split.outcome.ok()) << split.outcome.output;
  EXPECT_FALSE(was_compiled_as_a_whole(split));
  std::string const device_code = section(plain.object(), ".nv_fatbin");
  EXPECT_GT(device_code.size(), 1000U);
  EXPECT_TRUE(device_code == section(split.object(), ".nv_fatbin")) << "the device code differs";
  EXPECT_TRUE(section(plain.object(), ".text") == section(split.object(), ".text")) << "the host code differs";
  EXPECT_EQ(tool_output({"nm", plain.object().string()}), tool_output({"nm", split.object().string()}));
  EXPECT_EQ(words_of(plain), words_of(split));
  auto const read = dependencies_of(split);
  for (auto const& file : dependencies_of(plain)) EXPECT_TRUE(read.count(file)) << file;
}

// Those of the standard workspace and of all worked examples.
std::vector<fs::path> sources_of_this_project() {
  fs::path const root = fs::path(__FILE__).parent_path().parent_path().parent_path().parent_path();
  std::vector<fs::path> files;
  for (auto const& folder : {root / "agent_workdir" / "kernels", root / "kernels"}) {
    for (auto const& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".cu") files.push_back(entry.path());
    }
  }
  return files;
}

class SplitKernels : public SplitNvccTest, public testing::WithParamInterface<fs::path> {};

TEST_P(SplitKernels, AreWhatNvccMakesOfThem) {
  auto const text = util::read_file(GetParam(), 1U << 20U);
  ASSERT_TRUE(text);
  std::string const source = "kernels/" + GetParam().filename().string();
  m_sample.write("workspace/" + source, *text);
  make_room();
  auto const compiled = compile({source});
  ASSERT_EQ(compiled.size(), 2U);
  expect_same(compiled[0], compiled[1], source);
}

INSTANTIATE_TEST_SUITE_P(OfThisProject, SplitKernels, testing::ValuesIn(sources_of_this_project()),
                         [](auto const& kernel_file) { return kernel_file.param.stem().string(); });

constexpr const char* kernel =
    "#include <algorithm>\n#include <cstdint>\n"
    "namespace { template <typename T> __global__ void fill(T* out, T value) { int unused = 1; *out = value; } }\n"
    "int start(float* out) { fill<<<1, 1>>>(out, std::max(1.0F, 2.0F)); return 0; }\n";

TEST_F(SplitNvccTest, WithPrecompiledHeadersTheObjectIsTheSame) {
  m_sample.write("workspace/kernels/fill.cu", kernel);
  make_room();
  auto const without = compile({"kernels/fill.cu"}, 2);
  ASSERT_EQ(without.size(), 2U);
  expect_same(without[0], without[1], "without");
  std::size_t precompiled = 0;
  for (auto const& entry : fs::directory_iterator(m_sample.cache.root / "prefixes")) {
    precompiled += fs::exists(entry.path() / "prefix.h.gch") ? 1 : 0;
  }
  ASSERT_EQ(precompiled, 1U);
  // An edit of what follows the headers.
  m_sample.write("workspace/kernels/fill.cu", std::string(kernel) + "int edited() { return 3; }\n");
  make_room();
  auto const with = compile({"kernels/fill.cu"}, 2);
  ASSERT_EQ(with.size(), 2U);
  expect_same(with[0], with[1], "with");
  auto const text = util::read_file(with[1].folder / "tmpxft-6_fill.cudafe1.cpp", 8U << 20U);
  ASSERT_TRUE(text);
  EXPECT_LT(text->size(), 20'000U) << "the precompiled headers were not used";
}

TEST_F(SplitNvccTest, AFailureIsReportedInNvccsWordsWithoutCompilingAgain) {
  m_sample.write("workspace/kernels/name.cu", "#include <cstdint>\nint f() {\n  return m;\n}\n");
  m_sample.write("workspace/kernels/header.cu", "#include \"missing.h\"\n");
  m_sample.write("workspace/kernels/ptx.cu", "__global__ void k() { asm(\"nonsense.f32 %r1;\"); }\nvoid f() {}\n");
  m_sample.write("workspace/kernels/device.cu", "void f() {}\n#ifdef __CUDA_ARCH__\nint g() { return m; }\n#endif\n");
  m_sample.write("workspace/kernels/end.cu", "void f() {\n");
  make_room();
  std::vector<std::string> const sources = {"kernels/name.cu", "kernels/header.cu", "kernels/ptx.cu",
                                            "kernels/device.cu", "kernels/end.cu"};
  auto const compiled = compile(sources, 2);
  ASSERT_EQ(compiled.size(), 2 * sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) {
    SCOPED_TRACE(sources[i]);
    EXPECT_FALSE(compiled[2 * i].outcome.ok());
    EXPECT_FALSE(compiled[2 * i + 1].outcome.ok());
    auto const plain = parse_diagnostics(compiled[2 * i].outcome.output);
    auto const split = parse_diagnostics(compiled[2 * i + 1].outcome.output);
    ASSERT_FALSE(plain.empty());
    ASSERT_EQ(plain.size(), split.size());
    for (std::size_t j = 0; j < plain.size(); ++j) {
      EXPECT_EQ(describe(plain[j], ""), describe(split[j], ""));
      EXPECT_EQ(plain[j].phase, split[j].phase);
    }
    EXPECT_FALSE(was_compiled_as_a_whole(compiled[2 * i + 1]));
  }
}

TEST_F(SplitNvccTest, HalvesThatNameTheModuleDifferentlyAreCompiledAsAWhole) {
  m_sample.write("workspace/kernels/host.cu",
                 "#ifndef __CUDA_ARCH__\nvoid only_host() {}\n#endif\n"
                 "namespace { __global__ void k() {} }\nvoid f() { k<<<1, 1>>>(); }\n");
  make_room();
  auto const compiled = compile({"kernels/host.cu"}, 2);
  ASSERT_EQ(compiled.size(), 2U);
  EXPECT_TRUE(compiled[1].outcome.ok()) << compiled[1].outcome.output;
  EXPECT_TRUE(was_compiled_as_a_whole(compiled[1]));
  EXPECT_EQ(tool_output({"nm", compiled[0].object().string()}), tool_output({"nm", compiled[1].object().string()}));
}

TEST_F(SplitNvccTest, AnErrorThatOnlyTheHostCompilerFindsIsNvccsToReport) {
  m_sample.write("workspace/kernels/as.cu", "void f() { asm(\"nonsense\"); }\n");
  make_room();
  auto const compiled = compile({"kernels/as.cu"}, 2);
  ASSERT_EQ(compiled.size(), 2U);
  EXPECT_FALSE(compiled[1].outcome.ok());
  EXPECT_TRUE(was_compiled_as_a_whole(compiled[1]));
}

TEST_F(SplitNvccTest, TheStepsAreAskedForOnce) {
  ASSERT_TRUE(open());
  std::size_t kept = 0;
  for (auto const& entry : fs::recursive_directory_iterator(m_sample.cache.root / "nvcc-steps")) {
    if (!entry.is_regular_file()) continue;
    ++kept;
    auto const text = util::read_file(entry.path(), 1U << 20U);
    ASSERT_TRUE(text);
    EXPECT_EQ(text->find(fs::temp_directory_path().string() + "/"), std::string::npos) << *text;
  }
  EXPECT_EQ(kept, 1U);
}

TEST_F(SplitNvccTest, AnNvccOfAnotherVersionCompilesAsAWhole) {
  m_sample.toolchain.nvcc->version = "14.0.1";
  EXPECT_FALSE(open());
  m_sample.write("workspace/kernels/scale.cu", "int scale(int n) { return n; }\n");
  m_sample.interpreter.torch_cuda = "14.0";
  auto const result = m_sample.build(Target::cuda);
  EXPECT_FALSE(result.error) << result.error->message << result.error->detail;
}

TEST_F(SplitNvccTest, AnNvccWhoseStepsAreUnknownCompilesAsAWhole) {
  auto const real = m_sample.toolchain.nvcc->executable.string();
  m_sample.write("toolkit/bin/nvcc",
                 "#!/bin/sh\nfor word; do [ \"$word\" = --dryrun ] && echo '#$ unknown' && exit 0; done\nexec " + real +
                     " \"$@\"\n");
  fs::permissions(m_sample.root() / "toolkit/bin/nvcc", fs::perms::owner_all);
  m_sample.toolchain.nvcc->executable = m_sample.root() / "toolkit/bin/nvcc";
  EXPECT_FALSE(open());
  m_sample.write("workspace/kernels/scale.cu",
                 "__global__ void k() {}\nint scale(int n) { k<<<1, 1>>>(); return n; }\n");
  auto const result = m_sample.build(Target::cuda);
  ASSERT_FALSE(result.error) << result.error->message << result.error->detail;
  EXPECT_EQ(result.report.kernels.size(), 1U);
}

TEST(SplitNvccNames, OnlyPlainNamesAreTaken) {
  EXPECT_TRUE(SplitNvcc::fits("kernels/a_b-2.v.cu"));
  for (const char* name :
       {"kernels/a b.cu", "kernels/a\"b.cu", "kernels/$x.cu", "kernels/a\nb.cu", "-x.cu", "kernels/\xc3\xa4.cu"}) {
    EXPECT_FALSE(SplitNvcc::fits(name)) << name;
  }
}

}  // namespace
}  // namespace cuda_agent::build
