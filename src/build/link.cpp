#include "build/link.hpp"

#include <algorithm>
#include <chrono>

#include <spdlog/fmt/fmt.h>

#include "build/compile_error.hpp"
#include "build/diagnostics.hpp"
#include "build/jobs.hpp"
#include "build/tool_environment.hpp"
#include "build/undefined_symbols.hpp"
#include "exec/child.hpp"
#include "util/elf_file.hpp"
#include "util/files.hpp"
#include "util/hash.hpp"
#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

constexpr const char* extension_name = "cuda_extension";
constexpr const char* linked_name = "cuda_extension.so";

std::string link_key(const Objects& objects, const Flags& flags, const Toolchain& toolchain,
                     const Interpreter& interpreter) {
  util::Sha256 key;
  key.update(
      fmt::format("1\n{}\n{}\n{}\n", toolchain.host.identity, interpreter.torch_version, util::join(flags, "\n")));
  for (auto const& [source, stored] : objects.stored) key.update(source + " " + stored.record.sha256 + "\n");
  return key.hex();
}

// Found by its key, and whole: the hash beside it agrees.
std::optional<std::string> hash_of_whole(const fs::path& file) {
  auto const noted = util::read_file(file.string() + ".sha256", 128);
  auto const actual = util::sha256_of_file(file);
  if (!noted || !actual || *noted != *actual) return std::nullopt;
  return *actual;
}

Error undefined_error(const std::vector<UndefinedSymbol>& symbols, Target target) {
  std::string detail;
  for (auto const& symbol : symbols) {
    detail += fmt::format("{} (used by {})\n", symbol.name,
                          symbol.used_by.empty() ? "a library" : util::join(symbol.used_by, ", "));
  }
  auto const& first = symbols.front();
  std::string message = fmt::format("undefined symbol: {}", first.name);
  if (!first.used_by.empty()) message += ", used by " + util::join(first.used_by, ", ");
  message += "; no file in kernels/ and no library defines it";
  if (symbols.size() > 1) message += fmt::format(" (and {} more)", symbols.size() - 1);
  std::vector<std::string> hints = {
      "Check that declaration and definition agree: name, argument types, namespace, extern \"C\" on both sides."};
  if (target == Target::cpu) {
    hints.emplace_back("On the CPU *.cu files are left out: the function needs a C++ twin in kernels/*_cpu.cpp.");
  } else {
    hints.emplace_back("For CUDA *_cpu.cpp files are left out: the function must be defined in a .cu file.");
  }
  return Error(Outcome::compile_error, util::escape_untrusted(message, 4096), std::move(hints),
               util::escape_untrusted(detail, 8192));
}

/// A compiler that was moved or installed in part may find the C++ library only as an archive. The whole of it would
/// become part of the extension, with its own streams, locales and exceptions beside those of torch's process.
Flags shared_cxx_library(const Compiler& compiler, util::Deadline deadline) {
  exec::Command question;
  question.argv = {compiler.executable.string(), "-print-file-name=libstdc++.so"};
  question.env = tool_environment({compiler.executable}, "/tmp");
  auto const answer = exec::run(question, deadline.earlier(util::Deadline::after(std::chrono::seconds(20))));
  bool const found = answer && answer->status.ok() && fs::path(util::trim(answer->output)).is_absolute();
  return found ? Flags{} : Flags{"-l:libstdc++.so.6"};
}

class Linker {
 public:
  Linker(const Objects& objects, Target target, double timeout, const BuildRoom& room, const Toolchain& toolchain,
         const Interpreter& interpreter)
      : m_objects(objects),
        m_target(target),
        m_timeout(timeout),
        m_room(room),
        m_toolchain(toolchain),
        m_interpreter(interpreter),
        m_flags(link_flags(target, toolchain, interpreter)) {
    m_linked.report.source = extension_name;
    m_linked.report.tool = "link";
  }

  Linked run(const Cache& cache, util::Progress& progress, util::Deadline deadline) {
    fs::path const kept =
        ObjectStore(cache).place("extensions", link_key(m_objects, m_flags, m_toolchain, m_interpreter), ".so");
    if (auto const hash = hash_of_whole(kept)) {
      m_linked.report.cached = true;
      m_linked.file = kept;
      m_linked.sha256 = *hash;
      return std::move(m_linked);
    }
    m_linked.error = link(progress, deadline);
    if (!m_linked.error) m_linked.error = check();
    if (!m_linked.error) m_linked.error = keep(kept);
    return std::move(m_linked);
  }

 private:
  // Objects are linked under their sources' names, which is what linkers then print.
  std::optional<Error> lay_out() {
    auto output = m_room.make_output("link");
    if (!output) return output.error();
    m_output = *output;
    auto objects = m_room.make_output("objects");
    if (!objects) return objects.error();
    m_object_folder = *objects;
    for (auto const& [source, stored] : m_objects.stored) {
      if (auto copied = copy_into_place(stored.file, m_object_folder / (source + ".o")); !copied) return copied.error();
    }
    return std::nullopt;
  }

  /// GNU ld names some places by the file name alone: the one source that has it.
  std::string source_named(const std::string& file) const {
    std::vector<std::string> found;
    for (auto const& [source, stored] : m_objects.stored) {
      if (fs::path(source).filename() == file) found.push_back(source);
    }
    return found.size() == 1 ? found.front() : file;
  }

  std::optional<Error> link(util::Progress& progress, util::Deadline deadline) {
    if (auto error = lay_out()) return error;
    BuildRoom::Extra const objects{m_object_folder, "/cuda-agent/objects"};
    Flags argv = {m_toolchain.host.executable.string(), "-o",
                  m_room.seen(BuildRoom::output_place(m_output), linked_name).string()};
    for (auto const& [source, stored] : m_objects.stored) argv.push_back(m_room.seen(objects, source + ".o").string());
    argv.insert(argv.end(), m_flags.begin(), m_flags.end());
    auto const cxx_library = shared_cxx_library(m_toolchain.host, deadline);
    argv.insert(argv.end(), cxx_library.begin(), cxx_library.end());
    Job job;
    job.label = extension_name;
    job.verb = "linking";
    job.timeout = m_timeout;
    job.command = [&] { return m_room.command(argv, m_output, {objects}); };
    auto const outcome = run_jobs({job}, 1, progress, deadline).front();
    m_linked.report.start = outcome.start;
    m_linked.report.seconds = outcome.seconds;
    m_linked.report.diagnostics = parse_diagnostics(outcome.output);
    for (auto& diagnostic : m_linked.report.diagnostics) {
      diagnostic.phase = "link";
      diagnostic.file = source_named(diagnostic.file);
    }
    if (outcome.ok()) return std::nullopt;
    return explain_failure({extension_name, "link", m_timeout, true}, outcome, m_linked.report.diagnostics);
  }

  /// Whether it came from an archive in spite of all: then the extension throws by functions of its own.
  std::optional<Error> check_cxx_library() const {
    auto const extension = util::ElfFile::open(m_output / linked_name);
    if (!extension) return extension.error();
    auto const needed = extension->needed();
    bool const shared = std::any_of(needed.begin(), needed.end(),
                                    [](const std::string& name) { return name.starts_with("libstdc++.so"); });
    if (shared || !extension->exports("__cxa_throw")) return std::nullopt;
    return Error(Outcome::environment_error,
                 fmt::format("{} links the C++ library into the extension itself (an archive, or -static-libstdc++); "
                             "torch's process has one already",
                             m_toolchain.host.executable.string()),
                 {"set CXX to a g++ or clang++ that links the shared libstdc++.so.6"});
  }

  std::optional<Error> check() {
    if (auto error = check_cxx_library()) return error;
    std::vector<std::pair<std::string, fs::path>> objects;
    for (auto const& [source, stored] : m_objects.stored) objects.emplace_back(source, stored.file);
    auto const undefined =
        find_undefined_symbols(m_output / linked_name, objects, library_folders(m_toolchain, m_interpreter));
    if (!undefined) return undefined.error();
    if (undefined->empty()) return std::nullopt;
    for (auto const& symbol : *undefined) {
      m_linked.report.diagnostics.push_back({symbol.used_by.empty() ? "" : symbol.used_by.front(), 0, 0, "error",
                                             util::escape_untrusted("undefined symbol " + symbol.name, 4096), "link"});
    }
    return undefined_error(*undefined, m_target);
  }

  std::optional<Error> keep(const fs::path& kept) {
    auto const hash = util::sha256_of_file(m_output / linked_name);
    if (!hash) return hash.error();
    if (auto copied = copy_into_place(m_output / linked_name, kept); !copied) return copied.error();
    if (auto noted = util::write_file(kept.string() + ".sha256", *hash); !noted) return noted.error();
    m_linked.file = kept;
    m_linked.sha256 = *hash;
    return std::nullopt;
  }

  const Objects& m_objects;
  Target m_target;
  double m_timeout;
  const BuildRoom& m_room;
  const Toolchain& m_toolchain;
  const Interpreter& m_interpreter;
  Flags m_flags;
  fs::path m_output;
  fs::path m_object_folder;
  Linked m_linked;
};

}  // namespace

std::vector<fs::path> library_folders(const Toolchain& toolchain, const Interpreter& interpreter) {
  auto folders = interpreter.library_dirs;
  for (const char* name : {"lib64", "lib"}) folders.push_back(toolchain.cuda_home / name);
  return folders;
}

Linked link_extension(const Objects& objects, Target target, double timeout, const BuildRoom& room,
                      const Toolchain& toolchain, const Interpreter& interpreter, const Cache& cache,
                      util::Progress& progress, util::Deadline deadline) {
  return Linker(objects, target, timeout, room, toolchain, interpreter).run(cache, progress, deadline);
}

}  // namespace cuda_agent::build
