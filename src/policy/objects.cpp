#include "policy/objects.hpp"

#include <algorithm>

#include "policy/objects_input.hpp"

namespace cuda_agent::policy {

namespace {

// In the order of the rules, then of need: libraries of torch hold weak copies of what is the C++ library's.
util::NeededLibraries libraries_of(const util::ElfFile& extension, const ObjectRules& rules,
                                   const std::vector<std::filesystem::path>& folders) {
  util::NeededLibraries libraries(folders);
  for (auto const& group : rules.groups) {
    for (auto const& name : extension.needed()) {
      if (matches(group.libraries, name)) libraries.add(name);
    }
  }
  libraries.add_needed_by(extension);
  return libraries;
}

}  // namespace

Result<std::vector<ObjectFinding>> check_objects(const ObjectCheck& check) {
  auto const rules = object_rules();
  if (!rules) return fail(rules.error());
  auto const input = ObjectInput::open(check);
  if (!input) return fail(input.error());
  auto libraries = libraries_of(input->extension(), *rules, check.folders);
  std::vector<ObjectFinding> findings;
  find_imports(*input, *rules, libraries, findings);
  find_exports(*input, *rules, libraries, findings);
  find_linkage(*input, *rules, check.folders, findings);
  find_constructors(*input, *rules, findings);
  find_kernel_calls(*input, findings);
  // What a header brings along with a call is said after the call.
  std::stable_partition(findings.begin(), findings.end(),
                        [&](const ObjectFinding& one) { return one.rule != rules->unknown.rule; });
  return findings;
}

}  // namespace cuda_agent::policy
