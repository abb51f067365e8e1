// What the checks of objects look at: the extension, its object files, and who in them uses or defines a symbol.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policy/objects.hpp"
#include "policy/objects_rules.hpp"
#include "util/elf_file.hpp"
#include "util/needed_libraries.hpp"

namespace cuda_agent::policy {

struct ObjectFile {
  std::string source;
  util::ElfFile file;
  std::vector<util::ElfSymbol> symbols;
  std::vector<util::ElfSection> sections;
};

class ObjectInput {
 public:
  /// Errors: environment_error when a file cannot be read.
  static Result<ObjectInput> open(const ObjectCheck& check);

  const util::ElfFile& extension() const { return m_extension; }
  const std::vector<ObjectFile>& objects() const { return m_objects; }
  /// Sources whose objects refer to the symbol and do not define it.
  std::vector<std::string> users_of(std::string_view symbol) const { return sources_of(m_users, symbol); }
  /// Sources whose objects define it for others.
  std::vector<std::string> definers_of(std::string_view symbol) const { return sources_of(m_definers, symbol); }

 private:
  using Sources = std::map<std::string_view, std::vector<std::string>>;

  explicit ObjectInput(util::ElfFile extension) : m_extension(std::move(extension)) {}
  Result<void> add(const std::string& source, const std::filesystem::path& path);
  static std::vector<std::string> sources_of(const Sources& sources, std::string_view symbol);

  util::ElfFile m_extension;
  std::vector<ObjectFile> m_objects;
  Sources m_users;
  Sources m_definers;
};

/// Adds a finding: "SUBJECT VERB SYMBOL, which WHY." with the names made safe to show. `used_by` is the subject.
void report(std::vector<ObjectFinding>& findings, const std::string& rule, const std::string& symbol,
            const std::vector<std::string>& used_by, const std::string& verb, const std::string& why,
            const std::string& instead);

void find_imports(const ObjectInput& input, const ObjectRules& rules, util::NeededLibraries& libraries,
                  std::vector<ObjectFinding>& findings);
void find_exports(const ObjectInput& input, const ObjectRules& rules, util::NeededLibraries& libraries,
                  std::vector<ObjectFinding>& findings);
void find_linkage(const ObjectInput& input, const ObjectRules& rules, const std::vector<std::filesystem::path>& folders,
                  std::vector<ObjectFinding>& findings);
void find_constructors(const ObjectInput& input, const ObjectRules& rules, std::vector<ObjectFinding>& findings);
void find_kernel_calls(const ObjectInput& input, std::vector<ObjectFinding>& findings);

/// The group that judges symbols of this library; nullptr: none.
const SymbolGroup* group_of_library(const ObjectRules& rules, const std::string& library);

}  // namespace cuda_agent::policy
