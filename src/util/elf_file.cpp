#include "util/elf_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <elf.h>
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util/fd.hpp"

namespace cuda_agent::util {

namespace {

// Everything is read by copy: the file's own offsets need not be aligned.
template <typename T>
std::optional<T> read_at(const ElfBytes& bytes, std::uint64_t offset) {
  if (offset > bytes.size || bytes.size - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data + offset, sizeof(T));
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
  Fd const fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return unreadable(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode) || status.st_size < static_cast<off_t>(sizeof(Elf64_Ehdr))) {
    return unreadable(path, "not an ELF file");
  }
  auto const size = static_cast<std::uint64_t>(status.st_size);
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return unreadable(path, std::strerror(errno));
  ElfFile file;
  file.m_file = {static_cast<const unsigned char*>(data), size};
  if (auto read = file.read_sections(path); !read) return fail(read.error());
  return file;
}

ElfFile::ElfFile(ElfFile&& other) noexcept { *this = std::move(other); }

ElfFile& ElfFile::operator=(ElfFile&& other) noexcept {
  std::swap(m_file, other.m_file);
  m_machine = other.m_machine;
  m_sections_at = other.m_sections_at;
  m_section_count = other.m_section_count;
  m_section_size = other.m_section_size;
  m_section_strings = other.m_section_strings;
  m_symbols = other.m_symbols;
  m_symbol_strings = other.m_symbol_strings;
  m_symbol_indices = other.m_symbol_indices;
  m_dynamic = other.m_dynamic;
  m_gnu_hash = other.m_gnu_hash;
  return *this;
}

ElfFile::~ElfFile() {
  if (m_file.data != nullptr) ::munmap(const_cast<unsigned char*>(m_file.data), m_file.size);
}

Result<void> ElfFile::read_sections(const std::filesystem::path& path) {
  auto const header = read_at<Elf64_Ehdr>(m_file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
      header->e_ident[EI_DATA] != ELFDATA2LSB) {
    return unreadable(path, "not a 64-bit little-endian ELF file");
  }
  m_machine = header->e_machine;
  m_sections_at = header->e_shoff;
  m_section_size = header->e_shentsize;
  auto const section_at = [&](std::uint64_t index) {
    return read_at<Elf64_Shdr>(m_file, m_sections_at + index * m_section_size);
  };
  // Objects with very many sections keep the numbers that do not fit the header in section 0.
  auto const first = section_at(0);
  m_section_count = header->e_shnum;
  if (m_section_count == 0 && header->e_shoff != 0 && first) m_section_count = first->sh_size;
  std::uint64_t names = header->e_shstrndx;
  if (names == SHN_XINDEX && first) names = first->sh_link;
  auto const strings_of = [&](std::uint64_t index) {
    auto const strings = section_at(index);
    return strings ? piece(strings->sh_offset, strings->sh_size) : ElfBytes();
  };
  m_section_strings = strings_of(names);
  unsigned const wanted = header->e_type == ET_REL ? SHT_SYMTAB : SHT_DYNSYM;
  for (std::uint64_t i = 0; i < m_section_count; ++i) {
    auto const section = section_at(i);
    if (!section) return unreadable(path, "its section table is cut off");
    auto const content = piece(section->sh_offset, section->sh_size);
    if (section->sh_type == wanted) {
      m_symbols = content;
      m_symbol_strings = strings_of(section->sh_link);
    } else if (section->sh_type == SHT_SYMTAB_SHNDX) {
      m_symbol_indices = content;
    } else if (section->sh_type == SHT_DYNAMIC) {
      m_dynamic = content;
    } else if (section->sh_type == SHT_GNU_HASH) {
      m_gnu_hash = content;
    }
  }
  return {};
}

ElfBytes ElfFile::piece(std::uint64_t offset, std::uint64_t size) const {
  if (offset > m_file.size || m_file.size - offset < size) return {};
  return {m_file.data + offset, size};
}

std::string_view ElfFile::text_at(const ElfBytes& strings, std::uint64_t offset) {
  if (offset >= strings.size) return {};
  auto const* const begin = strings.data + offset;
  auto const* const end = static_cast<const unsigned char*>(std::memchr(begin, 0, strings.size - offset));
  if (end == nullptr) return {};
  return {reinterpret_cast<const char*>(begin), static_cast<std::size_t>(end - begin)};
}

std::optional<ElfSymbol> ElfFile::symbol_at(std::uint64_t index) const {
  auto const entry = read_at<Elf64_Sym>(m_symbols, index * sizeof(Elf64_Sym));
  if (!entry) return std::nullopt;
  std::uint32_t section = entry->st_shndx;
  if (section == SHN_XINDEX) {
    section = read_at<std::uint32_t>(m_symbol_indices, index * sizeof(std::uint32_t)).value_or(SHN_XINDEX);
  }
  return ElfSymbol{text_at(m_symbol_strings, entry->st_name),
                   static_cast<unsigned>(ELF64_ST_BIND(entry->st_info)),
                   static_cast<unsigned>(ELF64_ST_TYPE(entry->st_info)),
                   static_cast<unsigned>(ELF64_ST_VISIBILITY(entry->st_other)),
                   section,
                   entry->st_value,
                   entry->st_size};
}

std::vector<ElfSymbol> ElfFile::symbols() const {
  std::vector<ElfSymbol> all;
  all.reserve(m_symbols.size / sizeof(Elf64_Sym));
  for (std::uint64_t index = 0; index < m_symbols.size / sizeof(Elf64_Sym); ++index) {
    if (auto const symbol = symbol_at(index)) all.push_back(*symbol);
  }
  return all;
}

std::vector<ElfSection> ElfFile::sections() const {
  std::vector<ElfSection> all;
  for (std::uint64_t i = 0; i < m_section_count; ++i) {
    auto const section = read_at<Elf64_Shdr>(m_file, m_sections_at + i * m_section_size);
    if (!section) break;
    auto const bytes = section->sh_type == SHT_NOBITS ? ElfBytes() : piece(section->sh_offset, section->sh_size);
    all.push_back({text_at(m_section_strings, section->sh_name), section->sh_type, section->sh_flags, section->sh_size,
                   section->sh_info, bytes});
  }
  return all;
}

std::vector<ElfSegment> ElfFile::segments() const {
  std::vector<ElfSegment> all;
  auto const header = read_at<Elf64_Ehdr>(m_file, 0);
  for (unsigned i = 0; header && i < header->e_phnum; ++i) {
    auto const at = header->e_phoff + static_cast<std::uint64_t>(i) * header->e_phentsize;
    auto const segment = read_at<Elf64_Phdr>(m_file, at);
    if (!segment) break;
    all.push_back({segment->p_type, segment->p_flags});
  }
  return all;
}

std::vector<ElfRelocation> ElfFile::relocations(const ElfSection& section) {
  std::vector<ElfRelocation> all;
  if (section.type != SHT_RELA) return all;
  for (std::uint64_t at = 0; at + sizeof(Elf64_Rela) <= section.bytes.size; at += sizeof(Elf64_Rela)) {
    auto const entry = read_at<Elf64_Rela>(section.bytes, at);
    if (!entry) break;
    all.push_back({entry->r_offset, static_cast<std::uint32_t>(ELF64_R_TYPE(entry->r_info)),
                   static_cast<std::uint32_t>(ELF64_R_SYM(entry->r_info)), entry->r_addend});
  }
  return all;
}

std::vector<ElfDynamic> ElfFile::dynamic() const {
  std::vector<ElfDynamic> all;
  for (std::uint64_t at = 0; at + sizeof(Elf64_Dyn) <= m_dynamic.size; at += sizeof(Elf64_Dyn)) {
    auto const entry = read_at<Elf64_Dyn>(m_dynamic, at);
    if (!entry || entry->d_tag == DT_NULL) break;
    all.push_back({entry->d_tag, entry->d_un.d_val});
  }
  return all;
}

std::string_view ElfFile::dynamic_text(const ElfDynamic& entry) const { return text_at(m_symbol_strings, entry.value); }

std::vector<std::string> ElfFile::undefined_symbols() const {
  std::vector<std::string> names;
  for (auto const& symbol : symbols()) {
    if (!symbol.is_defined() && symbol.binding == STB_GLOBAL && !symbol.name.empty()) names.emplace_back(symbol.name);
  }
  return names;
}

std::vector<std::string> ElfFile::needed() const {
  std::vector<std::string> names;
  for (auto const& entry : dynamic()) {
    if (entry.tag == DT_NEEDED) names.emplace_back(dynamic_text(entry));
  }
  return names;
}

std::optional<ElfSymbol> ElfFile::definition(std::uint64_t index, std::string_view symbol) const {
  auto entry = symbol_at(index);
  if (!entry || !entry->is_defined() || entry->binding == STB_LOCAL || entry->name != symbol) return std::nullopt;
  return entry;
}

// Layout: nbuckets, symoffset, bloom_size, bloom_shift, bloom[bloom_size] (64 bit), buckets[nbuckets], chain[].
ElfFile::HashAnswer ElfFile::find_by_gnu_hash(std::string_view symbol) const {
  HashAnswer const absent{true, std::nullopt};
  auto const word = [&](std::uint64_t offset) { return read_at<std::uint32_t>(m_gnu_hash, offset); };
  auto const buckets = word(0);
  auto const first = word(4);
  auto const bloom_words = word(8);
  auto const bloom_shift = word(12);
  if (!buckets || !first || !bloom_words || !bloom_shift || *buckets == 0 || *bloom_words == 0) return {};
  std::uint32_t const hash = gnu_hash(symbol);
  auto const bloom = read_at<std::uint64_t>(m_gnu_hash, 16 + 8ULL * ((hash / 64) % *bloom_words));
  if (!bloom) return {};
  std::uint64_t const mask = (1ULL << (hash % 64)) | (1ULL << ((hash >> (*bloom_shift % 32)) % 64));
  if ((*bloom & mask) != mask) return absent;
  std::uint64_t const buckets_at = 16 + 8ULL * *bloom_words;
  std::uint64_t const chain_at = buckets_at + 4ULL * *buckets;
  auto const index = word(buckets_at + 4ULL * (hash % *buckets));
  if (!index || *index < *first) return absent;
  for (std::uint64_t at = *index;; ++at) {
    auto const chained = word(chain_at + 4ULL * (at - *first));
    if (!chained) return absent;
    if ((*chained | 1U) == (hash | 1U)) {
      if (auto found = definition(at, symbol)) return {true, found};
    }
    if ((*chained & 1U) != 0) return absent;
  }
}

std::optional<ElfSymbol> ElfFile::find_export(std::string_view symbol) const {
  if (m_gnu_hash.data != nullptr) {
    if (auto const answer = find_by_gnu_hash(symbol); answer.asked) return answer.symbol;
  }
  for (std::uint64_t index = 0; index < m_symbols.size / sizeof(Elf64_Sym); ++index) {
    if (auto found = definition(index, symbol)) return found;
  }
  return std::nullopt;
}

}  // namespace cuda_agent::util
