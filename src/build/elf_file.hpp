// A small reader of 64-bit little-endian ELF files: enough to ask which symbols an object needs and a library offers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_agent/error.hpp"

namespace cuda_agent::build {

class ElfFile {
 public:
  /// Maps the file. Errors (environment_error): not readable, not a 64-bit little-endian ELF file, out of bounds.
  static Result<ElfFile> open(const std::filesystem::path& path);

  ElfFile(ElfFile&& other) noexcept;
  ElfFile& operator=(ElfFile&& other) noexcept;
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;
  ~ElfFile();

  /// Names of undefined symbols that are not weak: of .dynsym for a shared object, of .symtab for an object file.
  std::vector<std::string> undefined_symbols() const;
  /// DT_NEEDED, in order.
  std::vector<std::string> needed() const;
  /// Whether the shared object defines the symbol for others, found as the dynamic linker does, by its hash table.
  bool exports(std::string_view symbol) const;

 private:
  struct Table {
    const unsigned char* data = nullptr;
    std::uint64_t size = 0;
  };

  ElfFile() = default;
  Result<void> read_sections(const std::filesystem::path& path);
  Table table_of(std::uint64_t offset, std::uint64_t size) const;
  std::string_view text_at(const Table& strings, std::uint64_t offset) const;
  bool defines(std::uint64_t index, std::string_view symbol) const;
  std::optional<bool> exports_by_gnu_hash(std::string_view symbol) const;

  const unsigned char* m_data = nullptr;
  std::uint64_t m_size = 0;
  Table m_symbols;         // .dynsym of a shared object, .symtab of an object file
  Table m_symbol_strings;  // .dynstr or .strtab
  Table m_dynamic;
  Table m_gnu_hash;
};

}  // namespace cuda_agent::build
