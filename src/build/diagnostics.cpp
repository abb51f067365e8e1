#include "build/diagnostics.hpp"

#include <cstdlib>
#include <optional>
#include <regex>

#include <spdlog/fmt/fmt.h>

#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

constexpr std::size_t longest_line = 4096;  // std::regex recurses: longer lines are cut before it sees them

int line_or_column(const std::ssub_match& match) { return match.matched ? std::atoi(match.str().c_str()) : 0; }

Diagnostic make(std::string file, int line, int column, std::string severity, const std::string& message,
                std::string phase) {
  if (file.rfind("./", 0) == 0) file.erase(0, 2);
  return Diagnostic{util::escape_untrusted(file),
                    line,
                    column,
                    std::move(severity),
                    util::escape_untrusted(util::trim(message), longest_line),
                    std::move(phase)};
}

std::string plain_severity(const std::string& word) {
  if (word.find("error") != std::string::npos || word == "fatal") return "error";
  if (word.find("warning") != std::string::npos) return "warning";
  return word == "remark" || word == "info" ? "note" : word;
}

// kernels/a.cpp:4:25: error: …          (g++, clang, nvcc's preprocessor)
std::optional<Diagnostic> gnu_line(const std::string& line) {
  static const std::regex pattern(
      R"(^([^\s:(][^:(]*):(\d+)(?::(\d+))?: (fatal error|error|warning|note|sorry, unimplemented|internal compiler error): (.*)$)");
  std::smatch match;
  if (!std::regex_match(line, match, pattern)) return std::nullopt;
  std::string const word = match[4];
  return make(match[1], line_or_column(match[2]), line_or_column(match[3]),
              word[0] == 's' ? "error" : plain_severity(word), match[5], "compile");
}

// kernels/a.cu(4): error: …             (cudafe++)
std::optional<Diagnostic> cudafe_line(const std::string& line) {
  static const std::regex pattern(
      R"(^([^\s(][^(]*)\((\d+)\): (catastrophic error|internal error|error|warning|remark|note)(?: (#[0-9]+(?:-D)?))?: (.*)$)");
  std::smatch match;
  if (!std::regex_match(line, match, pattern)) return std::nullopt;
  std::string const id = match[4].matched ? match[4].str() + ": " : std::string();
  return make(match[1], line_or_column(match[2]), 0, plain_severity(match[3]), id + match[5].str(), "compile");
}

// At end of source: error: expected a "}"       (cudafe++)
std::optional<Diagnostic> end_of_source_line(const std::string& line) {
  static const std::regex pattern(
      R"(^(At end of source): (catastrophic error|internal error|error|warning|remark)(?: (#[0-9]+(?:-D)?))?: (.*)$)");
  std::smatch match;
  if (!std::regex_match(line, match, pattern)) return std::nullopt;
  return make("", 0, 0, plain_severity(match[2]), match[4].str() + " at the end of the source", "compile");
}

// ptxas /tmp/x.ptx, line 53; error   : …     ptxas fatal   : …     ptxas warning : …     ptxas info    : (C7510) …
std::optional<Diagnostic> ptxas_line(const std::string& line) {
  static const std::regex with_line(R"(^ptxas \S+, line (\d+); (error|fatal|warning|info)\s*: (.*)$)");
  static const std::regex plain(R"(^ptxas (error|fatal|warning)\s*: (.*)$)");
  static const std::regex advice(R"(^ptxas info\s*: (\(C\d+\) .*)$)");
  std::smatch match;
  if (std::regex_match(line, match, with_line)) {
    return make("", 0, 0, plain_severity(match[2]), fmt::format("{} (PTX line {})", match[3].str(), match[1].str()),
                "assemble");
  }
  if (std::regex_match(line, match, plain)) return make("", 0, 0, plain_severity(match[1]), match[2], "assemble");
  if (std::regex_match(line, match, advice)) return make("", 0, 0, "note", match[1], "assemble");
  return std::nullopt;
}

// out/x.s:12: Error: no such instruction: …     (as; the file is a temporary one)
std::optional<Diagnostic> assembler_line(const std::string& line) {
  static const std::regex pattern(R"(^([^\s:][^:]*):(\d+): (Error|Warning): (.*)$)");
  std::smatch match;
  if (!std::regex_match(line, match, pattern)) return std::nullopt;
  std::string const file = match[1];
  bool const temporary = file.size() > 2 && file.compare(file.size() - 2, 2, ".s") == 0;
  return make(temporary ? "" : file, temporary ? 0 : line_or_column(match[2]), 0,
              match[3] == "Error" ? "error" : "warning", match[4], "assemble");
}

// nvcc fatal   : …        nvcc error   : …        g++: fatal error: …        cc1plus: error: …
std::optional<Diagnostic> driver_line(const std::string& line) {
  static const std::regex nvcc(R"(^nvcc (fatal|error|warning)\s*: (.*)$)");
  static const std::regex host(
      R"(^(?:\S*(?:g\+\+|gcc|clang|clang\+\+|c\+\+)[-.\d]*|cc1plus|cc1): (fatal error|error|warning): (.*)$)");
  static const std::regex memory(
      R"(^(?:cc1plus|cc1|\S*g\+\+[-.\d]*): (out of memory .*)$|^(virtual memory exhausted: .*)$)");
  std::smatch match;
  if (std::regex_match(line, match, nvcc)) return make("", 0, 0, plain_severity(match[1]), match[2], "compile");
  if (std::regex_match(line, match, host)) return make("", 0, 0, plain_severity(match[1]), match[2], "compile");
  if (std::regex_match(line, match, memory)) {
    return make("", 0, 0, "error", match[1].matched ? match[1].str() : match[2].str(), "compile");
  }
  return std::nullopt;
}

// "objects/kernels/a.cpp.o" → "kernels/a.cpp": objects to be linked are named after their sources.
std::string source_of_object(const std::string& object) {
  std::string source = object;
  if (auto const at = source.rfind("objects/"); at != std::string::npos) source.erase(0, at + 8);
  if (source.size() > 2 && source.compare(source.size() - 2, 2, ".o") == 0) source.erase(source.size() - 2);
  return source;
}

// mold, lld and GNU ld, each with its own words for the same things.
std::optional<Diagnostic> linker_line(const std::string& line) {
  static const std::regex mold_duplicate(R"(^(?:mold|ld\.mold): error: duplicate symbol: ([^:]+): ([^:]+): (.*)$)");
  static const std::regex other(R"(^\S*(?:mold|ld\.lld|ld|ld\.bfd|ld\.gold)(?:: |:\s)(error|fatal|warning): (.*)$)");
  static const std::regex gnu_duplicate(
      R"(^(?:\S*ld: )?(\S+?):.*multiple definition of [`']([^']*)'; ([^:]+):.*first defined here$)");
  static const std::regex gnu_undefined(R"(^(?:\S*ld: )?(\S+?):.*undefined reference to [`']([^']*)'$)");
  static const std::regex gnu_plain(R"(^\S*/?ld: (?!.*in function)(.*)$)");
  std::smatch match;
  if (std::regex_match(line, match, mold_duplicate)) {
    return make(
        source_of_object(match[1]), 0, 0, "error",
        fmt::format("multiple definition of {}; first defined in {}", match[3].str(), source_of_object(match[2])),
        "link");
  }
  if (std::regex_match(line, match, gnu_duplicate)) {
    return make(
        source_of_object(match[1]), 0, 0, "error",
        fmt::format("multiple definition of {}; first defined in {}", match[2].str(), source_of_object(match[3])),
        "link");
  }
  if (std::regex_match(line, match, gnu_undefined)) {
    return make(source_of_object(match[1]), 0, 0, "error", fmt::format("undefined symbol {}", match[2].str()), "link");
  }
  if (std::regex_match(line, match, other)) return make("", 0, 0, plain_severity(match[1]), match[2], "link");
  if (std::regex_match(line, match, gnu_plain)) {
    bool const harmless = match[1].str().rfind("warning", 0) == 0 || match[1].str().rfind("NOTE", 0) == 0;
    return make("", 0, 0, harmless ? "warning" : "error", match[1], "link");
  }
  return std::nullopt;
}

std::optional<Diagnostic> parse_line(const std::string& line) {
  for (auto* parser :
       {gnu_line, cudafe_line, end_of_source_line, ptxas_line, linker_line, assembler_line, driver_line}) {
    if (auto diagnostic = parser(line)) return diagnostic;
  }
  return std::nullopt;
}

// cudafe++ prints no column: it shows the source line, indented by two, and a caret under the place.
// What it shows has its macros expanded, so that the caret counts only where all before it is the source's own.
int column_of_caret(const std::vector<std::string>& lines, std::size_t after, const std::string& source_line) {
  if (lines.size() <= after + 2 || source_line.empty()) return 0;
  static const std::regex caret(R"(^ *\^ *$)");
  std::string const& below = lines[after + 2];
  if (below.size() >= longest_line || !std::regex_match(below, caret)) return 0;
  auto const at = below.find('^');
  bool const own =
      at >= 2 && at - 2 <= source_line.size() && lines[after + 1].compare(0, at, "  " + source_line, 0, at) == 0;
  return own ? static_cast<int>(at) - 1 : 0;
}

// lld says in the lines below where a symbol was defined twice, each place in two lines of which the second has the
// object:
//   >>> defined at a.cpp
//   >>>            objects/kernels/a.cpp.o:(add(int))
void name_definitions(const std::vector<std::string>& lines, std::size_t after, Diagnostic& diagnostic) {
  constexpr std::string_view start = "duplicate symbol: ";
  if (diagnostic.phase != "link" || diagnostic.message.rfind(start, 0) != 0) return;
  static const std::regex place(R"(^>>> +([^:>]+\.o):\(.*\)$)");
  std::vector<std::string> sources;
  for (std::size_t i = after + 1; i < lines.size() && lines[i].rfind(">>>", 0) == 0; ++i) {
    std::smatch match;
    if (lines[i].size() < longest_line && std::regex_match(lines[i], match, place)) {
      sources.push_back(source_of_object(match[1]));
    }
  }
  if (sources.size() < 2) return;
  diagnostic.file = sources[1];
  diagnostic.message = fmt::format("multiple definition of {}; first defined in {}",
                                   diagnostic.message.substr(start.size()), sources[0]);
}

}  // namespace

std::vector<Diagnostic> parse_diagnostics(std::string_view output, const SourceLine& source_line) {
  std::vector<Diagnostic> diagnostics;
  auto const lines = util::split_lines(output);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto diagnostic = parse_line(lines[i].substr(0, longest_line));
    if (!diagnostic) continue;
    name_definitions(lines, i, *diagnostic);
    if (source_line && diagnostic->column == 0 && diagnostic->phase == "compile" && diagnostic->line > 0) {
      diagnostic->column = column_of_caret(lines, i, source_line(diagnostic->file, diagnostic->line));
    }
    diagnostics.push_back(std::move(*diagnostic));
  }
  return diagnostics;
}

const Diagnostic* first_error(const std::vector<Diagnostic>& diagnostics) {
  for (auto const& diagnostic : diagnostics) {
    if (diagnostic.severity == "error") return &diagnostic;
  }
  return nullptr;
}

std::string describe(const Diagnostic& diagnostic, const std::string& fallback) {
  std::string place = diagnostic.file.empty() ? fallback : diagnostic.file;
  if (diagnostic.line > 0) place += fmt::format(":{}", diagnostic.line);
  if (diagnostic.line > 0 && diagnostic.column > 0) place += fmt::format(":{}", diagnostic.column);
  return place + ": " + diagnostic.message;
}

std::string environment_failure(std::string_view output) {
  static const std::regex killed_host(
      R"(^\S*(?:g\+\+|gcc|c\+\+|clang|clang\+\+)[-.\d]*: fatal error: Killed signal terminated program (\S+)$)");
  static const std::regex killed_nvcc(R"(^nvcc error\s*: '([^']+)' died due to signal 9.*$)");
  static const std::regex killed_linker(R"(^collect2: fatal error: ld terminated with signal 9.*$)");
  static const std::regex disk_full(
      R"(^(?:[^:\s]+(?::\d+)*: fatal error: (?:when writing output to|error writing to|error closing) \S+: No space left on device)"
      R"(|\S+\.s: Fatal error: .*No space left on device'?)"
      R"(|(?:ld\.)?mold: failed to write to an output file\. Disk full\?)"
      R"(|(?:\S*/)?(?:ld|ld\.lld|ld\.bfd|fatbinary|ptxas|nvcc)(?:: | (?:fatal|error)\s*: ).*No space left on device.*)$)");
  for (auto const& whole : util::split_lines(output)) {
    std::string const line = whole.substr(0, longest_line);
    std::smatch match;
    if (std::regex_match(line, match, killed_host) || std::regex_match(line, match, killed_nvcc)) {
      return fmt::format("the system killed the compiler ({}), probably for lack of memory",
                         util::escape_untrusted(match[1].str()));
    }
    if (std::regex_match(line, killed_linker)) return "the system killed the linker, probably for lack of memory";
    if (std::regex_match(line, disk_full)) {
      return "disk full: the compiler could not write its result";
    }
  }
  return {};
}

}  // namespace cuda_agent::build
