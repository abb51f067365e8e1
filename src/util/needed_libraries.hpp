// Which library provides a symbol, among those that a shared object needs and those that they need.
#pragma once

#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "util/elf_file.hpp"

namespace cuda_agent::util {

class NeededLibraries {
 public:
  /// `folders` are searched before the system's.
  explicit NeededLibraries(std::vector<std::filesystem::path> folders);

  /// By name, as DT_NEEDED has it. Libraries are asked in the order in which they are added, then those that they need.
  void add(const std::string& library);
  void add_needed_by(const ElfFile& file);

  struct Definition {
    std::string library;  ///< by name; valid on its own
    ElfSymbol symbol;
  };
  /// The first library that defines the symbol for others. Opens no more of them than it has to.
  std::optional<Definition> find(const std::string& symbol);

  /// Whether a library was looked for and is not here.
  bool is_missing(const std::string& library) const { return m_missing.count(library) != 0; }

 private:
  bool open_next();
  std::optional<ElfFile> open(const std::string& name) const;

  struct Library {
    std::string name;
    ElfFile file;
  };
  std::vector<std::filesystem::path> m_folders;
  std::set<std::string> m_known;
  std::set<std::string> m_missing;
  std::deque<std::string> m_waiting;
  std::deque<Library> m_libraries;
};

}  // namespace cuda_agent::util
