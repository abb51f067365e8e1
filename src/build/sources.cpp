#include "build/sources.hpp"

#include <algorithm>
#include <optional>

#include <spdlog/fmt/fmt.h>

#include "util/files.hpp"
#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool is_host_source(const fs::path& path) {
  auto const extension = path.extension();
  return extension == ".cpp" || extension == ".cc" || extension == ".cxx";
}

// None: not compiled by itself for this target.
std::optional<SourceKind> kind_of(const fs::path& path, Target target) {
  if (path.extension() == ".cu") return target == Target::cuda ? std::optional(SourceKind::cuda) : std::nullopt;
  if (!is_host_source(path)) return std::nullopt;
  std::string const stem = path.stem().string();
  if (target == Target::cuda && ends_with(stem, "_cpu")) return std::nullopt;
  return ends_with(stem, "_binding") ? SourceKind::binding : SourceKind::host;
}

tl::unexpected<Error> nothing_to_compile(const Sources& sources, Target target) {
  bool const has_cuda = std::any_of(sources.others.begin(), sources.others.end(),
                                    [](const std::string& path) { return ends_with(path, ".cu"); });
  if (target == Target::cpu && has_cuda) {
    return fail(Outcome::compile_error,
                "kernels/ holds CUDA sources only, and on the CPU only C++ kernels (kernels/*.cpp) can run",
                {"Judge it on a GPU: --device cuda (compile alone needs none: compile --arch 90a).",
                 "Or write a C++ twin of each kernel, kernels/<name>_cpu.cpp, and let <name>_binding.cpp call it when "
                 "CUDA_AGENT_CPU is defined."});
  }
  return fail(Outcome::compile_error,
              fmt::format("kernels/ holds nothing to compile{}",
                          sources.others.empty() ? "" : fmt::format(" (only {})", util::join(sources.others, ", "))),
              {target == Target::cuda ? "Write kernels/<name>.cu and kernels/<name>_binding.cpp."
                                      : "Write kernels/<name>_cpu.cpp and kernels/<name>_binding.cpp."});
}

bool registers_something(const fs::path& file) {
  auto const text = util::read_file(file, largest_source);
  return text && without_comments(*text).find("REGISTER_BINDING") != std::string::npos;
}

// The text is looked at only to say early what Python would say late: that the module is empty.
bool any_registers(const fs::path& root, const Sources& sources) {
  auto const registers = [&](const std::string& path) { return registers_something(root / path); };
  return std::any_of(sources.compiled.begin(), sources.compiled.end(),
                     [&](const SourceFile& source) { return registers(source.path); }) ||
         std::any_of(sources.others.begin(), sources.others.end(), registers);
}

tl::unexpected<Error> nothing_registered(const Sources& sources) {
  std::vector<std::string> names;
  for (auto const& source : sources.compiled) names.push_back(source.path);
  return fail(Outcome::compile_error,
              fmt::format("missing binding: no file in kernels/ calls REGISTER_BINDING, so the extension would have no "
                          "functions (compiled: {})",
                          util::join(names, ", ")),
              {"Write kernels/<name>_binding.cpp with: #include \"../binding_registry.h\" … "
               "REGISTER_BINDING(<name>, bind_<name>);"});
}

}  // namespace

std::string without_comments(const std::string& text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    if (text.compare(at, 2, "//") == 0) {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.compare(at, 2, "/*") == 0) {
      auto const end = text.find("*/", at + 2);
      at = end == std::string::npos ? text.size() : end + 2;
      result += ' ';
    } else if (text[at] == '"' || text[at] == '\'') {
      char const quote = text[at];
      do {
        result += text[at];
        if (text[at] == '\\' && at + 1 < text.size()) result += text[++at];
        ++at;
      } while (at < text.size() && text[at] != quote && text[at] != '\n');
      if (at < text.size()) result += text[at++];
    } else {
      result += text[at++];
    }
  }
  return result;
}

Result<Sources> select_sources(const fs::path& root, Target target) {
  Sources sources;
  std::error_code error;
  for (fs::recursive_directory_iterator it(root / "kernels", error), end; !error && it != end; it.increment(error)) {
    if (!fs::is_regular_file(it->symlink_status())) continue;
    std::string path = it->path().lexically_relative(root).string();
    if (auto const kind = kind_of(it->path(), target)) {
      sources.compiled.push_back({std::move(path), *kind});
    } else {
      sources.others.push_back(std::move(path));
    }
  }
  std::sort(sources.compiled.begin(), sources.compiled.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  std::sort(sources.others.begin(), sources.others.end());
  if (sources.compiled.empty()) return nothing_to_compile(sources, target);
  if (!any_registers(root, sources)) return nothing_registered(sources);
  return sources;
}

}  // namespace cuda_agent::build
