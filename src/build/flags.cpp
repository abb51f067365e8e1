#include "build/flags.hpp"

#include <filesystem>

#include <spdlog/fmt/fmt.h>

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

void append(Flags& flags, const Flags& more) { flags.insert(flags.end(), more.begin(), more.end()); }

std::vector<fs::path> cuda_library_dirs(const Toolchain& toolchain) {
  std::vector<fs::path> folders;
  for (const char* name : {"lib64", "lib", "targets/x86_64-linux/lib", "lib64/stubs", "lib/stubs"}) {
    fs::path const folder = toolchain.cuda_home / name;
    std::error_code error;
    if (!toolchain.cuda_home.empty() && fs::is_directory(folder, error)) folders.push_back(folder);
  }
  return folders;
}

bool has_library(const std::vector<fs::path>& folders, const std::string& name) {
  for (auto const& folder : folders) {
    std::error_code error;
    if (fs::exists(folder / fmt::format("lib{}.so", name), error)) return true;
  }
  return false;
}

// Torch's libraries come first; CUDA's own only where the objects use them.
void append_cuda_libraries(Flags& flags, const Toolchain& toolchain) {
  auto const folders = cuda_library_dirs(toolchain);
  for (auto const& folder : folders) flags.push_back("-L" + folder.string());
  append(flags, {"-lc10_cuda", "-ltorch_cuda", "-lcudart", "-Wl,--as-needed"});
  for (const char* name : {"cublas", "cublasLt", "cudnn", "cuda"}) {
    if (has_library(folders, name)) flags.push_back(fmt::format("-l{}", name));
  }
}

}  // namespace

bool is_clang(const Compiler& compiler) { return compiler.identity.find("clang") != std::string::npos; }

Flags common_flags(Target target, const Toolchain& toolchain, const Interpreter& interpreter) {
  Flags flags = {"-std=c++17", "-DTORCH_EXTENSION_NAME=cuda_extension", "-DTORCH_API_INCLUDE_EXTENSION_H",
                 fmt::format("-D_GLIBCXX_USE_CXX11_ABI={}", interpreter.cxx11_abi ? 1 : 0),
                 target == Target::cuda ? "-DCUDA_AGENT_CUDA=1" : "-DCUDA_AGENT_CPU=1"};
  for (auto const& folder : interpreter.include_dirs) append(flags, {"-isystem", folder.string()});
  if (target == Target::cuda) {
    // Thrust and CUB tell profilers what they do through NVTX, which loads libraries by name at run time; the policy
    // refuses that, and a kernel must not run differently beside a profiler.
    append(flags, {"-DNVTX_DISABLE", "-isystem", (toolchain.cuda_home / "include").string()});
  }
  return flags;
}

Flags host_flags(SourceKind kind, Target target, const Toolchain& toolchain, const Interpreter& interpreter) {
  Flags flags = {kind == SourceKind::binding ? "-O0" : "-O3", "-fPIC", "-fvisibility=hidden"};
  if (is_clang(toolchain.host)) {
    append(flags, {"-fno-color-diagnostics", "-ferror-limit=20"});
  } else {
    append(flags, {"-fno-gnu-unique", "-fdiagnostics-color=never", "-fmax-errors=20"});
  }
  if (target == Target::cpu) {
    // at::parallel_for is an OpenMP loop in a header; without the flag it would run on one thread.
    if (!is_clang(toolchain.host)) flags.emplace_back("-fopenmp");
    if (kind == SourceKind::host) flags.emplace_back("-march=native");
  }
  append(flags, common_flags(target, toolchain, interpreter));
  return flags;
}

Flags nvcc_flags(const Architecture& architecture, const Toolchain& toolchain, const Interpreter& interpreter) {
  Flags flags = {"-O3", "--use_fast_math"};
  append(flags, architecture.nvcc_flags());
  append(flags, {"-Xptxas", "-v", "--expt-relaxed-constexpr", "-D__CUDA_NO_HALF_OPERATORS__",
                 "-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
                 "-D__CUDA_NO_HALF2_OPERATORS__", "-ccbin", toolchain.host.executable.string(), "-Xcompiler",
                 is_clang(toolchain.host) ? "-fPIC,-fvisibility=hidden"
                                          : "-fPIC,-fvisibility=hidden,-fno-gnu-unique,-fdiagnostics-color=never"});
  append(flags, common_flags(Target::cuda, toolchain, interpreter));
  return flags;
}

Flags link_flags(Target target, const Toolchain& toolchain, const Interpreter& interpreter) {
  Flags flags = {"-shared"};
  if (!toolchain.linker.empty()) flags.push_back("-fuse-ld=" + toolchain.linker);
  if (target == Target::cpu && !is_clang(toolchain.host)) flags.emplace_back("-fopenmp");
  for (auto const& folder : interpreter.library_dirs) flags.push_back("-L" + folder.string());
  append(flags, {"-Wl,--no-as-needed", "-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_python"});
  if (target == Target::cuda) append_cuda_libraries(flags, toolchain);
  return flags;
}

}  // namespace cuda_agent::build
