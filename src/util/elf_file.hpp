// A small reader of 64-bit little-endian ELF files: what an object needs, defines and is made of, and what a library
// offers. Nothing in the file is believed: every offset is checked, and what lies outside counts as absent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_agent/error.hpp"

namespace cuda_agent::util {

/// A piece of the file; valid as long as the ElfFile.
struct ElfBytes {
  const unsigned char* data = nullptr;
  std::uint64_t size = 0;
};

/// The constants are those of <elf.h>: STB_*, STT_*, STV_*, SHN_*.
struct ElfSymbol {
  std::string_view name;
  unsigned binding = 0;
  unsigned type = 0;
  unsigned visibility = 0;
  std::uint32_t section = 0;  ///< SHN_UNDEF when somebody else defines it
  std::uint64_t value = 0;
  std::uint64_t size = 0;

  bool is_defined() const { return section != 0; }
};

struct ElfSection {
  std::string_view name;
  unsigned type = 0;        ///< SHT_*
  std::uint64_t flags = 0;  ///< SHF_*
  std::uint64_t size = 0;   ///< in memory; `bytes` of a section without content (SHT_NOBITS) are empty
  std::uint32_t info = 0;   ///< of relocations: the section that they change
  ElfBytes bytes;
};

struct ElfRelocation {
  std::uint64_t offset = 0;  ///< in an object file: within the section that is changed
  std::uint32_t type = 0;    ///< R_X86_64_* or the like
  std::uint32_t symbol = 0;  ///< index into symbols()
  std::int64_t addend = 0;
};

struct ElfSegment {
  std::uint32_t type = 0;   ///< PT_*
  std::uint32_t flags = 0;  ///< PF_*
};

struct ElfDynamic {
  std::int64_t tag = 0;  ///< DT_*
  std::uint64_t value = 0;
};

class ElfFile {
 public:
  /// Maps the file. Errors (environment_error): not readable, not a 64-bit little-endian ELF file, out of bounds.
  static Result<ElfFile> open(const std::filesystem::path& path);

  ElfFile(ElfFile&& other) noexcept;
  ElfFile& operator=(ElfFile&& other) noexcept;
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  ~ElfFile();

  /// EM_X86_64, EM_AARCH64, ...
  unsigned machine() const { return m_machine; }
  /// All symbols, in order: of .dynsym for a shared object, of .symtab for an object file.
  std::vector<ElfSymbol> symbols() const;
  std::vector<ElfSection> sections() const;
  std::vector<ElfSegment> segments() const;
  /// Of a section of type SHT_RELA; empty for others.
  static std::vector<ElfRelocation> relocations(const ElfSection& section);
  /// The dynamic section up to DT_NULL.
  std::vector<ElfDynamic> dynamic() const;
  /// The text that an entry such as DT_RUNPATH refers to.
  std::string_view dynamic_text(const ElfDynamic& entry) const;

  /// Names of undefined symbols that are not weak.
  std::vector<std::string> undefined_symbols() const;
  /// DT_NEEDED, in order.
  std::vector<std::string> needed() const;
  /// The shared object's definition for others, found as the dynamic linker does, by its hash table.
  std::optional<ElfSymbol> find_export(std::string_view symbol) const;
  bool exports(std::string_view symbol) const { return find_export(symbol).has_value(); }

 private:
  ElfFile() = default;
  Result<void> read_sections(const std::filesystem::path& path);
  ElfBytes piece(std::uint64_t offset, std::uint64_t size) const;
  static std::string_view text_at(const ElfBytes& strings, std::uint64_t offset);
  std::optional<ElfSymbol> symbol_at(std::uint64_t index) const;
  std::optional<ElfSymbol> definition(std::uint64_t index, std::string_view symbol) const;
  // Whether the table could be asked at all, and its answer.
  struct HashAnswer {
    bool asked = false;
    std::optional<ElfSymbol> symbol;
  };
  HashAnswer find_by_gnu_hash(std::string_view symbol) const;

  ElfBytes m_file;
  unsigned m_machine = 0;
  std::uint64_t m_sections_at = 0;
  std::uint64_t m_section_count = 0;
  std::uint64_t m_section_size = 0;
  ElfBytes m_section_strings;
  ElfBytes m_symbols;         // .dynsym of a shared object, .symtab of an object file
  ElfBytes m_symbol_strings;  // .dynstr or .strtab
  ElfBytes m_symbol_indices;  // sections of symbols that st_shndx has no room for
  ElfBytes m_dynamic;
  ElfBytes m_gnu_hash;
};

}  // namespace cuda_agent::util
