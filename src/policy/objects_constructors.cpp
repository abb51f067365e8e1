// Code that runs when the extension is loaded, before its init function. Objects with constructors and the registration
// of CUDA kernels need it; a function that asks for it by attribute does not.
#include <elf.h>
#include <spdlog/fmt/fmt.h>

#include "policy/objects_input.hpp"
#include "policy/objects_names.hpp"

namespace cuda_agent::policy {

namespace {

constexpr const char* why_constructors = "runs when the extension is loaded, before the judge has called anything";
constexpr const char* instead_of_constructors =
    "Call it from the bound function on its first call (a static local variable does that once).";

bool starts_with(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

// Sections whose content the start-up code calls or runs through; compilers use .init_array alone.
bool is_old_start_up(std::string_view section) {
  return section == ".init" || section == ".fini" || starts_with(section, ".preinit_array") ||
         starts_with(section, ".ctors") || starts_with(section, ".dtors");
}

// The functions that begin at a place: local ones are named by section and offset in a relocation.
std::vector<std::string> names_at(const ObjectFile& object, std::uint32_t section, std::uint64_t offset) {
  std::vector<std::string> names;
  for (auto const& symbol : object.symbols) {
    bool const names_code = symbol.type == STT_FUNC || symbol.type == STT_NOTYPE || symbol.type == STT_GNU_IFUNC;
    if (names_code && symbol.section == section && symbol.value == offset && !symbol.name.empty()) {
      names.emplace_back(symbol.name);
    }
  }
  return names;
}

std::vector<std::string> names_of_target(const ObjectFile& object, const util::ElfRelocation& relocation) {
  if (relocation.symbol >= object.symbols.size()) return {};
  auto const& symbol = object.symbols[relocation.symbol];
  if (symbol.type == STT_SECTION) {
    return names_at(object, symbol.section, static_cast<std::uint64_t>(relocation.addend));
  }
  return {std::string(symbol.name)};
}

void look_at(const ObjectFile& object, const ObjectRules& rules, const util::ElfSection& relocations,
             std::vector<ObjectFinding>& findings) {
  for (auto const& relocation : util::ElfFile::relocations(relocations)) {
    auto const names = names_of_target(object, relocation);
    bool compilers_own = false;
    for (auto const& name : names) compilers_own = compilers_own || matches(rules.constructors, name);
    if (compilers_own) continue;
    report(findings, "constructor", names.empty() ? "code without a name" : demangled(names.front()), {object.source},
           "asks for", why_constructors, instead_of_constructors);
  }
}

}  // namespace

void find_constructors(const ObjectInput& input, const ObjectRules& rules, std::vector<ObjectFinding>& findings) {
  for (auto const& object : input.objects()) {
    for (auto const& section : object.sections) {
      if (is_old_start_up(section.name) && section.size > 0 && section.type != SHT_RELA) {
        report(findings, "constructor", fmt::format("a section {}", section.name), {object.source}, "has",
               why_constructors, instead_of_constructors);
      }
      if (section.type != SHT_RELA || section.info >= object.sections.size()) continue;
      if (starts_with(object.sections[section.info].name, ".init_array")) look_at(object, rules, section, findings);
    }
  }
}

}  // namespace cuda_agent::policy
