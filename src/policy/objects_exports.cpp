// What the extension offers to others: its init function, and what the compiler itself shares between libraries.
#include <elf.h>
#include <spdlog/fmt/fmt.h>

#include "policy/objects_input.hpp"
#include "policy/objects_names.hpp"

namespace cuda_agent::policy {

namespace {

constexpr const char* init_function = "PyInit_cuda_extension";
constexpr const char* hide = "Make it static, or leave out the visibility attribute and give it a name of its own.";

// Inline functions, templates and tables of classes are emitted, weak, by everyone who includes them, so torch exports
// many of the same. What a library defines for good (neither weak nor unique) comes from no header.
bool is_compilers_own(const util::ElfSymbol& symbol, const ObjectRules& rules, util::NeededLibraries& libraries) {
  if (symbol.binding != STB_WEAK || symbol.name.substr(0, 2) != "_Z") return false;
  auto const other = libraries.find(std::string(symbol.name));
  if (!other || other->symbol.binding != STB_GLOBAL) return true;
  // A newer header may hold inline what the C++ library, or one that was built with an older one, defines.
  const SymbolGroup* const group = group_of_library(rules, other->library);
  return group == nullptr || group->name == "the C++ library";
}

}  // namespace

void find_exports(const ObjectInput& input, const ObjectRules& rules, util::NeededLibraries& libraries,
                  std::vector<ObjectFinding>& findings) {
  for (auto const& symbol : input.extension().symbols()) {
    if (!symbol.is_defined() || symbol.binding == STB_LOCAL || symbol.type == STT_GNU_IFUNC) continue;
    std::string const name(symbol.name);
    if (name == init_function || matches(rules.linker_symbols, name)) continue;
    if (is_compilers_own(symbol, rules, libraries)) continue;
    auto const other = libraries.find(name);
    if (other) {
      report(findings, "interposition", demangled(name), input.definers_of(name), "defines",
             fmt::format("{} defines for all", other->library), hide);
    } else {
      report(findings, "export", demangled(name), input.definers_of(name), "exports",
             fmt::format("other libraries could take for theirs; an extension exports {} alone", init_function), hide);
    }
  }
}

}  // namespace cuda_agent::policy
