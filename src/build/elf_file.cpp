#include "build/elf_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <elf.h>
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util/fd.hpp"

namespace cuda_agent::build {

namespace {

// Everything is read by copy: the file's own offsets need not be aligned.
template <typename T>
std::optional<T> read_at(const unsigned char* data, std::uint64_t size, std::uint64_t offset) {
  if (offset > size || size - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, data + offset, sizeof(T));
  return value;
}

std::uint32_t gnu_hash(std::string_view name) {
  std::uint32_t hash = 5381;
  for (char const c : name) hash = hash * 33 + static_cast<unsigned char>(c);
  return hash;
}

tl::unexpected<Error> unreadable(const std::filesystem::path& path, const std::string& why) {
  return fail(Outcome::environment_error, fmt::format("{}: {}", path.string(), why));
}

}  // namespace

Result<ElfFile> ElfFile::open(const std::filesystem::path& path) {
  util::Fd const fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return unreadable(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode) || status.st_size < static_cast<off_t>(sizeof(Elf64_Ehdr))) {
    return unreadable(path, "not an ELF file");
  }
  auto const size = static_cast<std::uint64_t>(status.st_size);
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return unreadable(path, std::strerror(errno));
  ElfFile file;
  file.m_data = static_cast<const unsigned char*>(data);
  file.m_size = size;
  if (auto read = file.read_sections(path); !read) return fail(read.error());
  return file;
}

ElfFile::ElfFile(ElfFile&& other) noexcept { *this = std::move(other); }

ElfFile& ElfFile::operator=(ElfFile&& other) noexcept {
  std::swap(m_data, other.m_data);
  std::swap(m_size, other.m_size);
  m_symbols = other.m_symbols;
  m_symbol_strings = other.m_symbol_strings;
  m_dynamic = other.m_dynamic;
  m_gnu_hash = other.m_gnu_hash;
  return *this;
}

ElfFile::~ElfFile() {
  if (m_data != nullptr) ::munmap(const_cast<unsigned char*>(m_data), m_size);
}

Result<void> ElfFile::read_sections(const std::filesystem::path& path) {
  auto const header = read_at<Elf64_Ehdr>(m_data, m_size, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return unreadable(path, "not a 64-bit little-endian ELF file");
  }
  unsigned const wanted = header->e_type == ET_REL ? SHT_SYMTAB : SHT_DYNSYM;
  for (unsigned i = 0; i < header->e_shnum; ++i) {
    std::uint64_t const at = header->e_shoff + static_cast<std::uint64_t>(i) * header->e_shentsize;
    auto const section = read_at<Elf64_Shdr>(m_data, m_size, at);
    if (!section) return unreadable(path, "its section table is cut off");
    if (section->sh_type == wanted) {
      m_symbols = table_of(section->sh_offset, section->sh_size);
      std::uint64_t const strings_at =
          header->e_shoff + static_cast<std::uint64_t>(section->sh_link) * header->e_shentsize;
      auto const strings = read_at<Elf64_Shdr>(m_data, m_size, strings_at);
      if (strings) m_symbol_strings = table_of(strings->sh_offset, strings->sh_size);
    } else if (section->sh_type == SHT_DYNAMIC) {
      m_dynamic = table_of(section->sh_offset, section->sh_size);
    } else if (section->sh_type == SHT_GNU_HASH) {
      m_gnu_hash = table_of(section->sh_offset, section->sh_size);
    }
  }
  return {};
}

ElfFile::Table ElfFile::table_of(std::uint64_t offset, std::uint64_t size) const {
  if (offset > m_size || m_size - offset < size) return {};
  return {m_data + offset, size};
}

std::string_view ElfFile::text_at(const Table& strings, std::uint64_t offset) const {
  if (offset >= strings.size) return {};
  auto const* const begin = strings.data + offset;
  auto const* const end = static_cast<const unsigned char*>(std::memchr(begin, 0, strings.size - offset));
  if (end == nullptr) return {};
  return {reinterpret_cast<const char*>(begin), static_cast<std::size_t>(end - begin)};
}

std::vector<std::string> ElfFile::undefined_symbols() const {
  std::vector<std::string> names;
  for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= m_symbols.size; at += sizeof(Elf64_Sym)) {
    auto const symbol = read_at<Elf64_Sym>(m_symbols.data, m_symbols.size, at);
    if (!symbol || symbol->st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbol->st_info) != STB_GLOBAL) continue;
    auto const name = text_at(m_symbol_strings, symbol->st_name);
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

std::vector<std::string> ElfFile::needed() const {
  std::vector<std::string> names;
  for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= m_dynamic.size; at += sizeof(Elf64_Dyn)) {
    auto const entry = read_at<Elf64_Dyn>(m_dynamic.data, m_dynamic.size, at);
    if (!entry || entry->d_tag == DT_NULL) break;
    if (entry->d_tag == DT_NEEDED) names.emplace_back(text_at(m_symbol_strings, entry->d_un.d_val));
  }
  return names;
}

bool ElfFile::defines(std::uint64_t index, std::string_view symbol) const {
  auto const entry = read_at<Elf64_Sym>(m_symbols.data, m_symbols.size, index * sizeof(Elf64_Sym));
  return entry && entry->st_shndx != SHN_UNDEF && ELF64_ST_BIND(entry->st_info) != STB_LOCAL &&
         text_at(m_symbol_strings, entry->st_name) == symbol;
}

// Layout: nbuckets, symoffset, bloom_size, bloom_shift, bloom[bloom_size] (64 bit), buckets[nbuckets], chain[].
std::optional<bool> ElfFile::exports_by_gnu_hash(std::string_view symbol) const {
  auto const word = [&](std::uint64_t offset) {
    return read_at<std::uint32_t>(m_gnu_hash.data, m_gnu_hash.size, offset);
  };
  auto const buckets = word(0);
  auto const first = word(4);
  auto const bloom_words = word(8);
  auto const bloom_shift = word(12);
  if (!buckets || !first || !bloom_words || !bloom_shift || *buckets == 0 || *bloom_words == 0) return std::nullopt;
  std::uint32_t const hash = gnu_hash(symbol);
  auto const bloom = read_at<std::uint64_t>(m_gnu_hash.data, m_gnu_hash.size, 16 + 8ULL * ((hash / 64) % *bloom_words));
  if (!bloom) return std::nullopt;
  std::uint64_t const mask = (1ULL << (hash % 64)) | (1ULL << ((hash >> (*bloom_shift % 32)) % 64));
  if ((*bloom & mask) != mask) return false;
  std::uint64_t const buckets_at = 16 + 8ULL * *bloom_words;
  std::uint64_t const chain_at = buckets_at + 4ULL * *buckets;
  auto index = word(buckets_at + 4ULL * (hash % *buckets));
  if (!index || *index < *first) return false;
  for (std::uint64_t at = *index;; ++at) {
    auto const chained = word(chain_at + 4ULL * (at - *first));
    if (!chained) return false;
    if ((*chained | 1U) == (hash | 1U) && defines(at, symbol)) return true;
    if ((*chained & 1U) != 0) return false;
  }
}

bool ElfFile::exports(std::string_view symbol) const {
  if (m_gnu_hash.data != nullptr) {
    if (auto const answer = exports_by_gnu_hash(symbol)) return *answer;
  }
  for (std::uint64_t index = 0; index < m_symbols.size / sizeof(Elf64_Sym); ++index) {
    if (defines(index, symbol)) return true;
  }
  return false;
}

}  // namespace cuda_agent::build
