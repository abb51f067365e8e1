#include "build/precompiled_header.hpp"

#include <spdlog/fmt/fmt.h>

#include "util/hash.hpp"
#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

constexpr double seconds_allowed = 300;
constexpr const char* header_name = "bindings.h";
constexpr const char* compiled_name = "bindings.h.gch";

std::string header_text(Target target) {
  std::string text = "#include <torch/types.h>\n#include <torch/csrc/utils/pybind.h>\n";
  if (target == Target::cuda) text += "#include <c10/cuda/CUDAStream.h>\n";
  return text;
}

}  // namespace

Result<PrecompiledHeader> PrecompiledHeader::open(const Cache& cache, Target target, const Flags& binding_flags,
                                                  const Toolchain& toolchain, const Interpreter& interpreter) {
  std::string const text = header_text(target);
  PrecompiledHeader header;
  header.m_key =
      util::sha256_hex(fmt::format("1\n{}\n{}\n{}\n{}\n{}", text, util::join(binding_flags, "\n"),
                                   toolchain.host.identity, interpreter.torch_version, interpreter.python_version));
  header.m_folder = cache.root / "headers" / header.m_key;
  std::error_code error;
  if (fs::exists(header.m_folder / header_name, error)) return header;
  if (auto made = util::make_folders(header.m_folder); !made) return fail(made.error());
  if (auto written = util::write_file(header.m_folder / header_name, text); !written) return fail(written.error());
  return header;
}

bool PrecompiledHeader::fits(const std::string& source_text) {
  return source_text.find("<torch/types.h>") != std::string::npos &&
         source_text.find("<torch/csrc/utils/pybind.h>") != std::string::npos;
}

bool PrecompiledHeader::is_ready() const {
  std::error_code error;
  return fs::exists(m_folder / compiled_name, error);
}

Flags PrecompiledHeader::include_flags(const BuildRoom& room) const {
  return {"-include", room.seen(place(), header_name).string()};
}

Result<Job> PrecompiledHeader::job(const BuildRoom& room, const Toolchain& toolchain, const Flags& binding_flags) {
  // Made beside its place, so that a rename suffices: the file has some 500 MB.
  auto temporary = util::TemporaryFolder::make(m_folder.parent_path(), ".new-");
  if (!temporary) return fail(temporary.error());
  m_temporary = std::move(*temporary);
  m_output = m_temporary->path();
  Flags argv = {toolchain.host.executable.string()};
  argv.insert(argv.end(), binding_flags.begin(), binding_flags.end());
  for (auto const& word : {std::string("-x"), std::string("c++-header"), room.seen(place(), header_name).string(),
                           std::string("-o"), room.seen(BuildRoom::output_place(m_output), compiled_name).string()}) {
    argv.push_back(word);
  }
  Job job;
  job.label = "torch's headers, once for all bindings";
  job.timeout = seconds_allowed;
  job.optional = true;
  job.command = [&room, argv, output = m_output, extra = place()] { return room.command(argv, output, {extra}); };
  job.succeeded = [this] { publish(); };
  return job;
}

void PrecompiledHeader::publish() const {
  std::error_code error;
  fs::rename(m_output / compiled_name, m_folder / compiled_name, error);
}

}  // namespace cuda_agent::build
