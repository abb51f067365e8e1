// How the extension is put together: what is loaded with it, and what may be written or run.
#include <algorithm>

#include <elf.h>
#include <spdlog/fmt/fmt.h>

#include "policy/objects_input.hpp"
#include "policy/objects_names.hpp"

namespace cuda_agent::policy {

namespace {

namespace fs = std::filesystem;

constexpr const char* stack_note = ".note.GNU-stack";
constexpr const char* no_assembly = "Leave out the assembly or attribute that asks for it.";

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    auto const end = std::min(text.find(separator), text.size());
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

class LinkageCheck {
 public:
  LinkageCheck(const ObjectInput& input, const ObjectRules& rules, const std::vector<fs::path>& folders,
               std::vector<ObjectFinding>& findings)
      : m_input(input), m_rules(rules), m_folders(folders), m_findings(findings) {}

  void run() {
    for (auto const& entry : m_input.extension().dynamic()) look_at(entry);
    look_at_segments();
    for (auto const& object : m_input.objects()) {
      for (auto const& symbol : object.symbols) {
        if (symbol.type == STT_GNU_IFUNC && symbol.is_defined())
          report_ifunc(std::string(symbol.name), {object.source});
      }
    }
  }

 private:
  void report_tag(const std::string& rule, const std::string& what, const std::string& why, const char* instead) {
    report(m_findings, rule, what, {}, "has", why, instead);
  }

  void report_ifunc(const std::string& symbol, const std::vector<std::string>& sources) {
    report(m_findings, "ifunc", demangled(symbol), sources, "defines",
           "is an indirect function: it runs code of its own while libraries are being loaded",
           "Leave out ifunc and target_clones: CPU kernels are compiled for this machine (-march=native).");
  }

  void look_at(const util::ElfDynamic& entry) {
    std::string const text(m_input.extension().dynamic_text(entry));
    switch (entry.tag) {
      case DT_NEEDED:
        if (!matches(m_rules.needed, text)) {
          report(m_findings, m_rules.libraries.rule, text, {}, "is linked with", "is a library beyond the allowed ones",
                 m_rules.libraries.instead);
        }
        break;
      case DT_RPATH:
      case DT_RUNPATH:
        for (auto const& folder : split(text, ':')) look_at_run_path(folder);
        break;
      case DT_TEXTREL:
        report_text_relocation();
        break;
      case DT_FLAGS:
        if ((entry.value & DF_TEXTREL) != 0) report_text_relocation();
        break;
      case DT_FLAGS_1:
        if ((entry.value & (DF_1_GLOBAL | DF_1_INITFIRST | DF_1_INTERPOSE | DF_1_LOADFLTR)) != 0) {
          report_tag("load-order", "flags in DT_FLAGS_1", "put it before other libraries", no_assembly);
        }
        break;
      case DT_PREINIT_ARRAY:
        report_tag("constructor", "DT_PREINIT_ARRAY", "runs code before libraries are ready", no_assembly);
        break;
      case DT_AUXILIARY:
      case DT_FILTER:
      case DT_AUDIT:
      case DT_DEPAUDIT:
      case DT_CONFIG:
        report_tag("load-order", fmt::format("the entry 0x{:x} in its dynamic section", entry.tag),
                   "makes the dynamic linker load or ask something else", no_assembly);
        break;
      default:
        break;
    }
  }

  void look_at_run_path(const std::string& folder) {
    auto const known = std::any_of(m_folders.begin(), m_folders.end(), [&](const fs::path& path) {
      return path.lexically_normal() == fs::path(folder).lexically_normal();
    });
    if (!known) {
      report_tag("load-order", fmt::format("the run path {}", folder),
                 "is none of the folders in which torch's and CUDA's libraries lie",
                 "Leave out what sets it; the judge finds the libraries.");
    }
  }

  // Linkers say it in two places.
  void report_text_relocation() {
    if (m_text_relocation) return;
    m_text_relocation = true;
    report_tag("text-relocation", "relocations in its code", "make that code writable while it is loaded",
               "Leave out assembly that is not position-independent.");
  }

  std::vector<std::string> sources_with(std::uint64_t flags, std::string_view section) const {
    std::vector<std::string> sources;
    for (auto const& object : m_input.objects()) {
      for (auto const& candidate : object.sections) {
        if ((candidate.flags & flags) != flags || (!section.empty() && candidate.name != section)) continue;
        sources.push_back(object.source);
        break;
      }
    }
    return sources;
  }

  void look_at_segments() {
    bool has_stack = false;
    bool stack_runs = false;
    bool writable_code = false;
    for (auto const& segment : m_input.extension().segments()) {
      bool const runs = (segment.flags & PF_X) != 0;
      if (segment.type == PT_GNU_STACK) {
        has_stack = true;
        stack_runs = runs;
      } else if (segment.type == PT_LOAD && runs && (segment.flags & PF_W) != 0) {
        writable_code = true;
      }
    }
    if (!has_stack || stack_runs) {
      report(m_findings, "executable-stack", "an executable stack", sources_with(SHF_EXECINSTR, stack_note), "asks for",
             "lets data run as code", "Leave out assembly that changes .note.GNU-stack, and nested functions.");
    }
    if (writable_code) {
      report(m_findings, "writable-code", "memory that is writable and executable",
             sources_with(SHF_WRITE | SHF_EXECINSTR, ""), "asks for", "lets data run as code", no_assembly);
    }
  }

  const ObjectInput& m_input;
  const ObjectRules& m_rules;
  const std::vector<fs::path>& m_folders;
  std::vector<ObjectFinding>& m_findings;
  bool m_text_relocation = false;
};

}  // namespace

void find_linkage(const ObjectInput& input, const ObjectRules& rules, const std::vector<fs::path>& folders,
                  std::vector<ObjectFinding>& findings) {
  LinkageCheck(input, rules, folders, findings).run();
}

}  // namespace cuda_agent::policy
