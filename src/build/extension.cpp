#include "build/extension.hpp"

#include <chrono>
#include <thread>

#include <spdlog/fmt/fmt.h>
#include <sys/utsname.h>

#include "build/link.hpp"
#include "build/nvcc.hpp"
#include "build/objects.hpp"
#include "util/environment.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "cuda_extension.so";

std::string host_architecture() {
  utsname names{};
  return ::uname(&names) == 0 ? names.machine : "unknown";
}

int job_count(int requested) {
  if (requested > 0) return requested;
  auto const cores = static_cast<int>(std::thread::hardware_concurrency());
  return cores > 0 ? cores : 1;
}

// One build, step by step; the first step that fails ends it.
class ExtensionBuild {
 public:
  ExtensionBuild(const ExtensionRequest& request, const Toolchain& toolchain, const Interpreter& interpreter,
                 const Cache& cache)
      : m_request(request), m_toolchain(toolchain), m_interpreter(interpreter), m_cache(cache) {
    m_result.report.device = request.target == Target::cuda ? "cuda" : "cpu";
  }

  ExtensionResult run(util::Progress& progress, util::Deadline deadline) {
    auto const start = util::Clock::now();
    m_result.error = build(progress, deadline);
    m_result.report.seconds = std::chrono::duration<double>(util::Clock::now() - start).count();
    return std::move(m_result);
  }

 private:
  std::optional<Error> build(util::Progress& progress, util::Deadline deadline) {
    auto sources = select_sources(m_request.snapshot, m_request.target);
    if (!sources) return sources.error();
    m_plan.sources = std::move(*sources);
    m_plan.target = m_request.target;
    m_plan.jobs = job_count(m_request.jobs);
    m_plan.object_timeout = m_request.object_timeout;
    if (auto error = choose_architecture(deadline)) return error;
    note_flags();
    auto const room = BuildRoom::make(m_request.output, m_request.snapshot,
                                      {m_request.support / module_source, m_request.support / "binding_registry.h"},
                                      m_toolchain, m_interpreter);
    if (!room) return room.error();
    auto const objects = build_objects(m_plan, *room, m_toolchain, m_interpreter, m_cache, progress, deadline);
    m_result.report.objects = objects.report;
    m_result.report.kernels = objects.kernels;
    if (objects.error) return objects.error;
    return link(objects, *room, progress, deadline);
  }

  std::optional<Error> choose_architecture(util::Deadline deadline) {
    if (m_request.target == Target::cpu) {
      m_result.report.architecture = host_architecture();
      m_result.report.architecture_from = "host";
      return std::nullopt;
    }
    if (auto error = check_cuda(m_toolchain, m_interpreter)) return error;
    auto const supported = supported_architectures(*m_toolchain.nvcc, m_cache, deadline);
    if (!supported) return supported.error();
    ArchitectureQuestion question;
    question.requested = m_request.architecture;
    question.torch_list = util::get_env("TORCH_CUDA_ARCH_LIST").value_or("");
    question.gpu = m_request.gpu_architecture;
    question.supported = *supported;
    question.nvcc_version = m_toolchain.nvcc->version;
    for (const char* name : {"NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"}) {
      if (auto value = util::get_env(name)) question.variables[name] = *value;
    }
    auto const decided = decide_architecture(question);
    if (!decided) return decided.error();
    m_plan.architecture = *decided;
    m_result.report.architecture = decided->name();
    m_result.report.architecture_from = decided->from;
    return std::nullopt;
  }

  void note_flags() {
    auto& flags = m_result.report.flags;
    flags["host"] = host_flags(SourceKind::host, m_plan.target, m_toolchain, m_interpreter);
    flags["binding"] = host_flags(SourceKind::binding, m_plan.target, m_toolchain, m_interpreter);
    flags["link"] = link_flags(m_plan.target, m_toolchain, m_interpreter);
    if (m_plan.architecture) flags["nvcc"] = nvcc_flags(*m_plan.architecture, m_toolchain, m_interpreter);
  }

  std::optional<Error> link(const Objects& objects, const BuildRoom& room, util::Progress& progress,
                            util::Deadline deadline) {
    auto const linked = link_extension(objects, m_plan.target, m_plan.object_timeout, room, m_toolchain, m_interpreter,
                                       m_cache, progress, deadline);
    m_result.report.objects.push_back(linked.report);
    if (linked.error) return linked.error;
    // A copy, not a link: nothing that happens to the result can reach the cache.
    fs::path const result = fs::absolute(m_request.output) / file_name;
    if (auto copied = copy_into_place(linked.file, result); !copied) return copied.error();
    for (auto const& [source, stored] : objects.stored) m_result.objects.emplace_back(source, stored.file);
    m_result.library_folders = library_folders(m_toolchain, m_interpreter);
    m_result.extension = result;
    m_result.report.extension_path = result.string();
    m_result.report.extension_sha256 = linked.sha256;
    return std::nullopt;
  }

  const ExtensionRequest& m_request;
  const Toolchain& m_toolchain;
  const Interpreter& m_interpreter;
  const Cache& m_cache;
  ObjectsPlan m_plan;
  ExtensionResult m_result;
};

}  // namespace

ExtensionResult build_extension(const ExtensionRequest& request, const Toolchain& toolchain,
                                const Interpreter& interpreter, const Cache& cache, util::Progress& progress,
                                util::Deadline deadline) {
  return ExtensionBuild(request, toolchain, interpreter, cache).run(progress, deadline);
}

}  // namespace cuda_agent::build
