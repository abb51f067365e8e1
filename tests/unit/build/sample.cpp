#include "unit/build/sample.hpp"

#include <cstdlib>

#include <gtest/gtest.h>

#include "exec/child.hpp"
#include "util/environment.hpp"

namespace cuda_agent::build::test {

namespace fs = std::filesystem;

namespace {

util::TemporaryFolder temporary_folder() {
  auto folder = util::TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-build-");
  if (!folder) throw std::runtime_error(folder.error().message);
  return std::move(*folder);
}

Toolchain usual_toolchain() {
  auto const deadline = util::Deadline::after(std::chrono::seconds(60));
  auto toolchain = find_toolchain(true, deadline);
  if (!toolchain) toolchain = find_toolchain(false, deadline);
  if (!toolchain) throw std::runtime_error(toolchain.error().message);
  return *toolchain;
}

}  // namespace

std::string captured(const std::string& name) {
  auto const text = util::read_file(fs::path(__FILE__).parent_path() / "captured" / name, 1 << 20);
  EXPECT_TRUE(text) << name;
  return text ? *text : std::string();
}

Variable::Variable(const char* name, const std::optional<std::string>& value)
    : m_name(name), m_before(util::get_env(name)) {
  if (value) {
    ::setenv(name, value->c_str(), 1);
  } else {
    ::unsetenv(name);
  }
}

Variable::~Variable() {
  if (m_before) {
    ::setenv(m_name, m_before->c_str(), 1);
  } else {
    ::unsetenv(m_name);
  }
}

Sample::Sample() : toolchain(usual_toolchain()), m_folder(temporary_folder()) {
  cache.root = root() / "cache";
  fs::path const libraries = root() / "libraries";
  fs::create_directories(libraries);
  for (const char* name : {"c10", "torch", "torch_cpu", "torch_python", "c10_cuda", "torch_cuda"}) {
    compile("", libraries / ("lib" + std::string(name) + ".so"), "-shared");
  }
  interpreter.executable = "/usr/bin/python3";
  interpreter.python_version = "3.11.2";
  interpreter.torch_version = "2.11.0";
  interpreter.torch_cuda = toolchain.nvcc ? toolchain.nvcc->version : "13.0";
  interpreter.library_dirs = {libraries};
  write("support/binding.cpp",
        "extern \"C\" __attribute__((visibility(\"default\"))) int PyInit_cuda_extension() "
        "{ return 0; }\n");
  write("support/binding_registry.h",
        "#define REGISTER_BINDING(name, func) [[maybe_unused]] static int name##_ = func()\n");
  write("workspace/kernels/scale.hpp", "int scale(int x);\ninline constexpr int factor = 2;\n");
  write("workspace/kernels/scale_cpu.cpp", "#include \"scale.hpp\"\nint scale(int x) { return factor * x; }\n");
  write("workspace/kernels/add_cpu.cpp", "int add(int x) { return x + 1; }\n");
  write("workspace/kernels/scale_binding.cpp",
        "#include \"../binding_registry.h\"\nint scale(int);\nstatic int go() { return scale(3); }\n"
        "REGISTER_BINDING(scale, go);\n");
}

void Sample::write(const std::string& path, std::string_view text) const {
  fs::create_directories((root() / path).parent_path());
  auto const written = util::write_file(root() / path, text);
  ASSERT_TRUE(written) << written.error().message;
}

void Sample::remove(const std::string& path) const { fs::remove(root() / path); }

ExtensionRequest Sample::request(Target target) const {
  ExtensionRequest request;
  request.snapshot = workspace();
  request.support = root() / "support";
  request.output = root() / "output";
  request.target = target;
  request.architecture = target == Target::cuda ? "90a" : "";
  request.jobs = 2;
  return request;
}

ExtensionResult Sample::build(Target target) const { return build(request(target)); }

ExtensionResult Sample::build(const ExtensionRequest& request) const {
  util::SilentProgress progress;
  return build_extension(request, toolchain, interpreter, cache, progress,
                         util::Deadline::after(std::chrono::seconds(100)));
}

void compile(const std::string& text, const fs::path& output, const std::string& kind,
             const std::vector<std::string>& more) {
  fs::path const source = output.string() + ".cpp";
  ASSERT_TRUE(util::write_file(source, text));
  auto const compiler = util::find_executable("g++");
  ASSERT_TRUE(compiler);
  exec::Command command;
  command.argv = {compiler->string(), "-fPIC", kind, source.string(), "-o", output.string()};
  command.argv.insert(command.argv.end(), more.begin(), more.end());
  command.env = {{"PATH", "/usr/bin:/bin"}};
  auto const done = exec::run(command, util::Deadline::after(std::chrono::seconds(60)));
  ASSERT_TRUE(done) << done.error().message;
  ASSERT_TRUE(done->status.ok()) << done->output;
}

BuiltObject entry(const ExtensionResult& result, const std::string& source) {
  for (auto const& object : result.report.objects) {
    if (object.source == source) return object;
  }
  ADD_FAILURE() << "no entry for " << source;
  return {};
}

}  // namespace cuda_agent::build::test
