#include "policy/objects_input.hpp"

#include <algorithm>
#include <utility>

#include <elf.h>
#include <spdlog/fmt/fmt.h>

#include "util/text.hpp"

namespace cuda_agent::policy {

namespace {

constexpr std::size_t longest_symbol = 512;

}  // namespace

Result<ObjectInput> ObjectInput::open(const ObjectCheck& check) {
  auto extension = util::ElfFile::open(check.extension);
  if (!extension) return fail(extension.error());
  ObjectInput input(std::move(*extension));
  for (auto const& [source, path] : check.objects) {
    if (auto added = input.add(source, path); !added) return fail(added.error());
  }
  return input;
}

Result<void> ObjectInput::add(const std::string& source, const std::filesystem::path& path) {
  auto file = util::ElfFile::open(path);
  if (!file) return fail(file.error());
  auto symbols = file->symbols();
  auto sections = file->sections();
  for (auto const& symbol : symbols) {
    if (symbol.binding == STB_LOCAL || symbol.name.empty()) continue;
    (symbol.is_defined() ? m_definers : m_users)[symbol.name].push_back(source);
  }
  m_objects.push_back({source, std::move(*file), std::move(symbols), std::move(sections)});
  return {};
}

std::vector<std::string> ObjectInput::sources_of(const Sources& sources, std::string_view symbol) {
  auto const found = sources.find(symbol);
  return found == sources.end() ? std::vector<std::string>() : found->second;
}

void report(std::vector<ObjectFinding>& findings, const std::string& rule, const std::string& symbol,
            const std::vector<std::string>& used_by, const std::string& verb, const std::string& why,
            const std::string& instead) {
  ObjectFinding finding;
  finding.rule = rule;
  finding.symbol = util::escape_untrusted(symbol, longest_symbol);
  for (auto const& source : used_by) finding.used_by.push_back(util::escape_untrusted(source, longest_symbol));
  finding.message =
      fmt::format("{} {} {}, which {}", finding.used_by.empty() ? "the extension" : util::join(finding.used_by, ", "),
                  verb, finding.symbol, util::escape_untrusted(why, longest_symbol));
  finding.hint = instead;
  findings.push_back(std::move(finding));
}

const SymbolGroup* group_of_library(const ObjectRules& rules, const std::string& library) {
  auto const found = std::find_if(rules.groups.begin(), rules.groups.end(),
                                  [&](const SymbolGroup& group) { return matches(group.libraries, library); });
  return found == rules.groups.end() ? nullptr : &*found;
}

}  // namespace cuda_agent::policy
