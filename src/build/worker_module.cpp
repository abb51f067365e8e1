#include "build/worker_module.hpp"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "build/compile_error.hpp"
#include "build/diagnostics.hpp"
#include "build/flags.hpp"
#include "build/jobs.hpp"
#include "build/tool_environment.hpp"
#include "util/files.hpp"
#include "util/hash.hpp"
#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_worker_source = 4U << 20U;
constexpr double seconds_a_file = 300;

struct WorkerSources {
  std::vector<fs::path> compiled;  // *.cpp
  std::vector<fs::path> python;    // *.py
  std::vector<fs::path> headers;
};

Result<WorkerSources> list_sources(const fs::path& folder) {
  WorkerSources sources;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    auto const extension = it->path().extension();
    if (extension == ".cpp") sources.compiled.push_back(it->path());
    if (extension == ".py") sources.python.push_back(it->path());
    if (extension == ".hpp" || extension == ".h") sources.headers.push_back(it->path());
  }
  for (auto* list : {&sources.compiled, &sources.python, &sources.headers}) std::sort(list->begin(), list->end());
  if (!sources.compiled.empty()) return sources;
  return fail(Outcome::environment_error,
              fmt::format("{} holds no sources of the worker module: the installation is not whole", folder.string()),
              {"Install cuda-agent again (cmake --install), or run it from its build folder."});
}

// The CUDA side needs torch's CUDA libraries and the toolkit's headers.
bool with_cuda(const Toolchain& toolchain, const Interpreter& interpreter) {
  std::error_code error;
  return !interpreter.torch_cuda.empty() && !toolchain.cuda_home.empty() &&
         fs::exists(toolchain.cuda_home / "include" / "cuda_runtime_api.h", error) &&
         fs::exists(interpreter.torch_dir / "lib" / "libc10_cuda.so", error);
}

Flags compile_flags(const Toolchain& toolchain, const Interpreter& interpreter, const fs::path& folder) {
  Flags flags = {"-O2",
                 "-fPIC",
                 "-fvisibility=hidden",
                 "-std=c++20",
                 "-DTORCH_API_INCLUDE_EXTENSION_H",
                 "-DTORCH_EXTENSION_NAME=_cuda_agent",
                 fmt::format("-D_GLIBCXX_USE_CXX11_ABI={}", interpreter.cxx11_abi ? 1 : 0),
                 "-I" + folder.string()};
  if (!is_clang(toolchain.host)) flags.emplace_back("-fno-gnu-unique");
  for (auto const& include : interpreter.include_dirs) {
    flags.emplace_back("-isystem");
    flags.push_back(include.string());
  }
  if (with_cuda(toolchain, interpreter)) {
    flags.emplace_back("-DCUDA_AGENT_TORCH_CUDA=1");
    flags.emplace_back("-isystem");
    flags.push_back((toolchain.cuda_home / "include").string());
  }
  return flags;
}

Flags module_link_flags(const Toolchain& toolchain, const Interpreter& interpreter) {
  Flags flags = {"-shared"};
  if (!toolchain.linker.empty()) flags.push_back("-fuse-ld=" + toolchain.linker);
  for (auto const& folder : interpreter.library_dirs) flags.push_back("-L" + folder.string());
  for (const char* library : {"-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_python"}) flags.emplace_back(library);
  if (with_cuda(toolchain, interpreter)) {
    flags.push_back("-L" + (toolchain.cuda_home / "lib64").string());
    for (const char* library : {"-lc10_cuda", "-ltorch_cuda", "-lcudart"}) flags.emplace_back(library);
  }
  return flags;
}

Result<std::string> module_key(const WorkerSources& sources, const Toolchain& toolchain,
                               const Interpreter& interpreter) {
  util::Sha256 key;
  key.update(fmt::format("1\n{}\n{}\n{}\n{}\n{}\n{}\n", interpreter.python_version, interpreter.extension_suffix,
                         interpreter.torch_version, interpreter.cxx11_abi, toolchain.host.identity,
                         with_cuda(toolchain, interpreter)));
  for (auto const* list : {&sources.compiled, &sources.python, &sources.headers}) {
    for (auto const& path : *list) {
      auto const text = util::read_file(path, largest_worker_source);
      if (!text) return fail(text.error());
      key.update(fmt::format("{} {}\n{}", path.filename().string(), text->size(), *text));
    }
  }
  return key.hex().substr(0, 32);
}

std::string module_name(const Interpreter& interpreter) { return "_cuda_agent" + interpreter.extension_suffix; }

bool is_there(const fs::path& folder, const Interpreter& interpreter) {
  std::error_code error;
  return fs::is_regular_file(folder / module_name(interpreter), error);
}

exec::Command tool_command(Flags argv, const Toolchain& toolchain, const fs::path& temporary) {
  exec::Command command;
  command.argv = std::move(argv);
  command.env = tool_environment({toolchain.host.executable}, temporary);
  command.cwd = temporary;
  return command;
}

class ModuleBuild {
 public:
  ModuleBuild(const WorkerSources& sources, const fs::path& folder, const fs::path& work, const Toolchain& toolchain,
              const Interpreter& interpreter)
      : m_sources(sources), m_folder(folder), m_work(work), m_toolchain(toolchain), m_interpreter(interpreter) {}

  std::optional<Error> run(util::Progress& progress, util::Deadline deadline) {
    if (auto written = write_unit(); !written) return written.error();
    for (auto const& job : {compile_job(), link_job()}) {
      auto const outcome = run_jobs({job}, 1, progress, deadline).front();
      if (outcome.ok()) continue;
      // Our own sources with a compiler that works: whatever goes wrong here is the installation's.
      return explain_failure({job.label, "host", job.timeout, false}, outcome, parse_diagnostics(outcome.output));
    }
    return copy_python();
  }

 private:
  // All sources as one translation unit: most of the time goes into torch's headers, which are then read once.
  Result<void> write_unit() const {
    std::string text;
    for (auto const& source : m_sources.compiled) text += fmt::format("#include \"{}\"\n", source.filename().string());
    return util::write_file(m_work / "worker.cpp", text);
  }

  Job compile_job() const {
    Flags argv = {m_toolchain.host.executable.string()};
    auto const flags = compile_flags(m_toolchain, m_interpreter, m_folder);
    argv.insert(argv.end(), flags.begin(), flags.end());
    for (auto const& word :
         {std::string("-c"), (m_work / "worker.cpp").string(), std::string("-o"), (m_work / "worker.o").string()}) {
      argv.push_back(word);
    }
    return make_job("compiling", std::move(argv));
  }

  Job link_job() const {
    Flags argv = {m_toolchain.host.executable.string(), "-o", (m_work / "module" / module_name(m_interpreter)).string(),
                  (m_work / "worker.o").string()};
    auto const flags = module_link_flags(m_toolchain, m_interpreter);
    argv.insert(argv.end(), flags.begin(), flags.end());
    return make_job("linking", std::move(argv));
  }

  Job make_job(const std::string& verb, Flags argv) const {
    Job job;
    job.label = "worker module";
    job.verb = verb;
    job.timeout = seconds_a_file;
    job.command = [this, argv = std::move(argv)] { return tool_command(argv, m_toolchain, m_work); };
    return job;
  }

  std::optional<Error> copy_python() const {
    for (auto const& file : m_sources.python) {
      std::error_code error;
      fs::copy_file(file, m_work / "module" / file.filename(), error);
      if (error) {
        return Error(Outcome::environment_error, fmt::format("cannot copy {}: {}", file.string(), error.message()));
      }
    }
    return std::nullopt;
  }

  const WorkerSources& m_sources;
  const fs::path& m_folder;
  const fs::path& m_work;
  const Toolchain& m_toolchain;
  const Interpreter& m_interpreter;
};

// A rename makes it appear whole. When another process was faster, its result is the same.
std::optional<Error> publish(const fs::path& made, const fs::path& place, const Interpreter& interpreter) {
  std::error_code error;
  fs::permissions(made,
                  fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read |
                      fs::perms::others_exec,
                  error);
  fs::rename(made, place, error);
  if (!error || is_there(place, interpreter)) return std::nullopt;
  return Error(Outcome::environment_error,
               fmt::format("cannot move the worker module to {}: {}", place.string(), error.message()),
               {"Check the folder's permissions and the space on its disk."});
}

Result<fs::path> build_into(const WorkerSources& sources, const fs::path& folder, const fs::path& destination,
                            const std::string& key, const Toolchain& toolchain, const Interpreter& interpreter,
                            util::Progress& progress, util::Deadline deadline) {
  fs::path const place = fs::absolute(destination) / key;
  if (is_there(place, interpreter)) return place;
  if (auto made = util::make_folders(destination); !made) return fail(made.error());
  auto const work = util::TemporaryFolder::make(fs::absolute(destination), ".build-");
  if (!work) return fail(work.error());
  if (auto made = util::make_folders(work->path() / "module"); !made) return fail(made.error());
  progress.note(fmt::format("building the worker module for Python {} and torch {} (once; some 20 seconds)",
                            interpreter.python_version, interpreter.torch_version));
  if (auto error = ModuleBuild(sources, folder, work->path(), toolchain, interpreter).run(progress, deadline)) {
    return fail(*error);
  }
  if (auto error = publish(work->path() / "module", place, interpreter)) return fail(*error);
  return place;
}

}  // namespace

Result<fs::path> worker_module(const fs::path& sources, const fs::path& installed, const Toolchain& toolchain,
                               const Interpreter& interpreter, const Cache& cache, util::Progress& progress,
                               util::Deadline deadline) {
  auto const listed = list_sources(sources);
  if (!listed) return fail(listed.error());
  auto const key = module_key(*listed, toolchain, interpreter);
  if (!key) return fail(key.error());
  if (!installed.empty() && is_there(installed / *key, interpreter)) return fs::absolute(installed / *key);
  return build_into(*listed, sources, cache.root / "worker", *key, toolchain, interpreter, progress, deadline);
}

Result<fs::path> build_worker_module(const fs::path& sources, const fs::path& destination, const Toolchain& toolchain,
                                     const Interpreter& interpreter, util::Progress& progress,
                                     util::Deadline deadline) {
  auto const listed = list_sources(sources);
  if (!listed) return fail(listed.error());
  auto const key = module_key(*listed, toolchain, interpreter);
  if (!key) return fail(key.error());
  return build_into(*listed, sources, destination, *key, toolchain, interpreter, progress, deadline);
}

}  // namespace cuda_agent::build
