// Finding the host compiler, the linker and nvcc.
#include <regex>

#include <spdlog/fmt/fmt.h>

#include "build/tool_environment.hpp"
#include "build/toolchain.hpp"
#include "exec/child.hpp"
#include "util/environment.hpp"
#include "util/files.hpp"
#include "util/hash.hpp"
#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

const std::vector<std::string> nvcc_hints = {
    "Install the CUDA Toolkit (nvcc 12 or 13), or set CUDA_HOME to where it is.",
    "Or judge the C++ kernels on the CPU: --device cpu."};

const std::vector<std::string> host_hints = {"Install one: sudo apt-get install g++",
                                             "Or set CXX to a g++ or clang++ that is on PATH."};

// "g++ (Debian 12.2.0-14) 12.2.0" → "12.2.0"; "… release 13.0, V13.0.88" → "13.0.88"
std::string version_in(const std::string& text) {
  static const std::regex nvcc(R"(V(\d+\.\d+\.\d+))");
  static const std::regex any(R"((\d+\.\d+(?:\.\d+)?))");
  std::smatch match;
  if (std::regex_search(text, match, nvcc)) return match[1];
  std::string const first = text.substr(0, text.find('\n'));
  std::string version;
  for (std::sregex_iterator it(first.begin(), first.end(), any), end; it != end; ++it) version = (*it)[1];
  return version;
}

Result<Compiler> ask_compiler(const fs::path& executable, const std::vector<std::string>& hints,
                              util::Deadline deadline) {
  exec::Command command;
  command.argv = {executable.string(), "--version"};
  command.env = tool_environment({executable}, "/tmp");
  auto const answer = exec::run(command, deadline.earlier(util::Deadline::after(std::chrono::seconds(20))));
  if (!answer) return fail(answer.error());
  if (!answer->status.ok()) {
    return fail(Outcome::environment_error,
                fmt::format("{} --version ended with {}: this compiler does not work", executable.string(),
                            answer->status.describe()),
                hints, util::escape_untrusted(answer->output, 4096));
  }
  auto const lines = util::split_lines(answer->output);
  std::error_code ignored;
  Compiler compiler;
  compiler.executable = executable;
  compiler.version = version_in(answer->output);
  compiler.identity = fmt::format(
      "{} [{}]", lines.empty() ? "" : util::escape_untrusted(util::trim(lines.front())),
      util::sha256_hex(answer->output + util::file_state(fs::canonical(executable, ignored))).substr(0, 16));
  return compiler;
}

Result<fs::path> find_host_compiler() {
  if (auto const cxx = util::get_env("CXX"); cxx && !util::trim(*cxx).empty()) {
    std::string const name = util::trim(*cxx);
    if (auto found = util::find_executable(name)) return *found;
    return fail(Outcome::environment_error,
                fmt::format("CXX is \"{}\", which is not an executable on PATH", util::escape_untrusted(name, 200)),
                {"Set CXX to the path of a g++ or clang++, without arguments, or unset it."});
  }
  for (const char* name : {"g++", "clang++"}) {
    if (auto found = util::find_executable(name)) return *found;
  }
  return fail(Outcome::environment_error, "no C++ compiler: neither g++ nor clang++ is on PATH", host_hints);
}

// What the user names decides alone: another toolkit, found elsewhere, would be a surprise.
Result<fs::path> find_nvcc() {
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    auto const home = util::get_env(variable);
    if (!home || home->empty()) continue;
    fs::path const nvcc = fs::path(*home) / "bin" / "nvcc";
    if (auto found = util::find_executable(nvcc.string())) return *found;
    return fail(Outcome::environment_error,
                fmt::format("no nvcc: {} is {}, but {} is not there", variable, util::escape_untrusted(*home, 400),
                            util::escape_untrusted(nvcc.string(), 400)),
                nvcc_hints);
  }
  for (const char* place : {"nvcc", "/usr/local/cuda/bin/nvcc"}) {
    if (auto found = util::find_executable(place)) return *found;
  }
  return fail(Outcome::environment_error, "no nvcc: it is neither on PATH nor in /usr/local/cuda/bin", nvcc_hints);
}

fs::path cuda_home_of(const fs::path& nvcc) {
  std::error_code error;
  fs::path const real = fs::canonical(nvcc, error);
  return (error ? nvcc : real).parent_path().parent_path();
}

// A linker outside the system's folders could not be seen from the compiler's sandbox.
std::string find_linker() {
  for (auto const& [program, name] : {std::pair{"mold", "mold"}, std::pair{"ld.lld", "lld"}}) {
    auto const found = util::find_executable(program);
    if (found && found->string().rfind("/usr/", 0) == 0) return name;
  }
  return {};
}

}  // namespace

Result<Toolchain> find_toolchain(bool want_nvcc, util::Deadline deadline) {
  Toolchain toolchain;
  auto const host = find_host_compiler();
  if (!host) return fail(host.error());
  auto compiler = ask_compiler(*host, host_hints, deadline);
  if (!compiler) return fail(compiler.error());
  toolchain.host = *compiler;
  toolchain.linker = find_linker();
  auto const nvcc = find_nvcc();
  if (nvcc) toolchain.cuda_home = cuda_home_of(*nvcc);
  if (!want_nvcc) return toolchain;
  if (!nvcc) return fail(nvcc.error());
  auto asked = ask_compiler(*nvcc, nvcc_hints, deadline);
  if (!asked) return fail(asked.error());
  toolchain.nvcc = *asked;
  return toolchain;
}

}  // namespace cuda_agent::build
