// What the extension takes from others.
#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "policy/objects_input.hpp"
#include "policy/objects_names.hpp"

namespace cuda_agent::policy {

namespace {

// Names that a group claims whoever provides them: the interpreter may be linked statically, and a machine that only
// builds has no driver, so that there is no library to look into.
const SymbolGroup* group_of_name(const ObjectRules& rules, const std::string& symbol) {
  auto const found = std::find_if(rules.groups.begin(), rules.groups.end(),
                                  [&](const SymbolGroup& group) { return matches(group.symbols, symbol); });
  return found == rules.groups.end() ? nullptr : &*found;
}

void report_import(const ObjectInput& input, const std::string& symbol, const std::string& name, const Refusal& refusal,
                   const std::string& why, std::vector<ObjectFinding>& findings) {
  report(findings, refusal.rule, name, input.users_of(symbol), "refers to", why, refusal.instead);
}

}  // namespace

void find_imports(const ObjectInput& input, const ObjectRules& rules, util::NeededLibraries& libraries,
                  std::vector<ObjectFinding>& findings) {
  for (auto const& import : input.extension().symbols()) {
    if (import.is_defined() || import.name.empty()) continue;
    std::string const symbol(import.name);
    std::string const name = demangled(symbol);
    const SymbolGroup* group = group_of_name(rules, symbol);
    if (group == nullptr) {
      auto const definition = libraries.find(symbol);
      if (!definition) {
        report_import(input, symbol, name, rules.unknown, rules.unknown.why, findings);
        continue;
      }
      group = group_of_library(rules, definition->library);
      if (group == nullptr) {
        std::string why = rules.libraries.why;
        if (auto const at = why.find("{library}"); at != std::string::npos) {
          why.replace(at, std::string_view("{library}").size(), definition->library);
        }
        report_import(input, symbol, name, rules.libraries, why, findings);
        continue;
      }
    }
    const Refusal* const refusal = refusal_of(*group, qualified_name(name));
    if (refusal != nullptr) report_import(input, symbol, name, *refusal, refusal->why, findings);
  }
}

}  // namespace cuda_agent::policy
