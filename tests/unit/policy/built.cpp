#include "unit/policy/built.hpp"

#include <cstdlib>
#include <optional>
#include <stdexcept>

#include <spdlog/fmt/fmt.h>

#include "build/architecture.hpp"
#include "build/build_room.hpp"
#include "build/link.hpp"
#include "build/nvcc.hpp"
#include "build/objects.hpp"
#include "exec/child.hpp"
#include "util/environment.hpp"
#include "util/files.hpp"
#include "util/text.hpp"

namespace cuda_agent::policy::test {

namespace {

namespace fs = std::filesystem;

const fs::path repository = OBJECTS_TEST_REPOSITORY;

util::Deadline soon() { return util::Deadline::after(std::chrono::seconds(500)); }

build::Cache shared_cache() { return {fs::path(OBJECTS_TEST_CACHE)}; }

template <typename T>
T need(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message + "\n" + result.error().detail);
  return std::move(*result);
}

build::Interpreter interpreter() {
  auto const cache = shared_cache();
  return need(build::find_interpreter(OBJECTS_TEST_PYTHON, soon(), &cache));
}

build::Toolchain toolchain(const std::string& compiler, build::Target target) {
  auto const before = util::get_env("CXX");
  ::setenv("CXX", compiler.c_str(), 1);
  auto found = build::find_toolchain(target == build::Target::cuda, soon());
  before ? ::setenv("CXX", before->c_str(), 1) : ::unsetenv("CXX");
  return need(std::move(found));
}

build::Architecture hopper(const build::Toolchain& toolchain) {
  build::ArchitectureQuestion question;
  question.requested = "90a";
  question.supported = need(build::supported_architectures(*toolchain.nvcc, shared_cache(), soon()));
  question.nvcc_version = toolchain.nvcc->version;
  return need(build::decide_architecture(question));
}

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  if (auto written = util::write_file(file, text); !written) throw std::runtime_error(written.error().message);
}

void run(const std::vector<std::string>& argv) {
  exec::Command command;
  command.argv = argv;
  command.env = {{"PATH", "/usr/bin:/bin"}};
  auto const done = need(exec::run(command, soon()));
  if (!done.status.ok()) throw std::runtime_error(done.output);
}

}  // namespace

const char* const nothing_binding =
    "#include \"../binding_registry.h\"\n"
    "static void bind_nothing(pybind11::module& m) { m.def(\"nothing\", [] { return 0; }); }\n"
    "REGISTER_BINDING(nothing, bind_nothing);\n";

Files kernels_of(const fs::path& folder) {
  Files files;
  for (auto const& item : fs::directory_iterator(repository / folder / "kernels")) {
    files["kernels/" + item.path().filename().string()] = need(util::read_file(item.path(), 1 << 20));
  }
  return files;
}

std::string harness_text(const std::string& name) {
  auto const all = need(util::read_file(repository / "tests" / "e2e" / "harness.py", 1 << 20));
  std::string const opening = "\n" + name + " = \"\"\"";
  auto const begin = all.find(opening);
  auto const end = all.find("\"\"\"", begin + opening.size());
  if (begin == std::string::npos || end == std::string::npos) throw std::runtime_error("harness.py has no " + name);
  std::string text;
  for (auto at = begin + opening.size(); at < end; ++at) {
    if (all[at] == '\\') ++at;  // Python's own escape: only backslashes are escaped there
    text += all[at];
  }
  return text;
}

std::string reason_not_to_build(build::Target target) {
  if (target == build::Target::cpu) return {};
  auto const tools = build::find_toolchain(true, soon());
  if (!tools) return tools.error().message;
  auto const error = build::check_cuda(*tools, interpreter());
  return error ? error->message : std::string();
}

std::vector<ObjectFinding> findings_in(const Files& files, build::Target target, const std::string& compiler) {
  auto const folder = need(util::TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-policy-"));
  fs::path const workspace = folder.path() / "workspace";
  for (auto const& [path, text] : files) write(workspace / path, text);
  auto const tools = toolchain(compiler, target);
  auto const python = interpreter();
  build::ObjectsPlan plan;
  plan.target = target;
  plan.sources = need(build::select_sources(workspace, target));
  plan.jobs = 2;
  plan.object_timeout = 400;
  if (target == build::Target::cuda) plan.architecture = hopper(tools);
  fs::path const support = repository / "agent_workdir";
  auto const room = need(build::BuildRoom::make(
      folder.path(), workspace, {support / build::module_source, support / "binding_registry.h"}, tools, python));
  util::SilentProgress progress;
  auto const cache = shared_cache();
  auto const objects = build::build_objects(plan, room, tools, python, cache, progress, soon());
  if (objects.error) throw std::runtime_error(objects.error->message + "\n" + objects.error->detail);
  auto const linked = build::link_extension(objects, target, 100, room, tools, python, cache, progress, soon());
  if (linked.error) throw std::runtime_error(linked.error->message + "\n" + linked.error->detail);
  ObjectCheck check;
  check.extension = linked.file;
  for (auto const& [source, stored] : objects.stored) check.objects.emplace_back(source, stored.file);
  check.folders = build::library_folders(tools, python);
  return need(check_objects(check));
}

std::vector<ObjectFinding> findings_in_library(const std::string& text, const std::vector<std::string>& flags) {
  auto const folder = need(util::TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-policy-"));
  fs::path const& root = folder.path();
  write(root / "user.cpp", text);
  auto const compiler = util::find_executable("g++");
  if (!compiler) throw std::runtime_error("these tests need g++");
  run({compiler->string(), "-fPIC", "-fvisibility=hidden", "-fno-gnu-unique", "-c", (root / "user.cpp").string(), "-o",
       (root / "user.o").string()});
  std::vector<std::string> link = {compiler->string(),         "-shared", "-fuse-ld=bfd",
                                   (root / "user.o").string(), "-o",      (root / "user.so").string()};
  link.insert(link.end(), flags.begin(), flags.end());
  run(link);
  return need(check_objects({root / "user.so", {{"kernels/user.cpp", root / "user.o"}}, {}}));
}

std::string listed(const std::vector<ObjectFinding>& findings) {
  std::string text;
  for (auto const& finding : findings) {
    text += fmt::format("[{}] {}\n    {}\n", finding.rule, finding.message, finding.hint);
  }
  return text;
}

}  // namespace cuda_agent::policy::test
