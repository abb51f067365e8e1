#include "util/elf_file.hpp"

#include <algorithm>

#include <elf.h>
#include <gtest/gtest.h>

#include "util/files.hpp"
#include "util/needed_libraries.hpp"

namespace cuda_agent::util {
namespace {

namespace fs = std::filesystem;

constexpr const char* defined = "_Z18elf_sample_definesi";
constexpr const char* needed = "_Z16elf_sample_needsi";

TEST(ElfFile, SaysWhatALibraryDefinesAndNeeds) {
  auto const file = ElfFile::open(ELF_SAMPLE);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->exports(defined));
  EXPECT_FALSE(file->exports(needed));
  auto const symbol = file->find_export(defined);
  ASSERT_TRUE(symbol);
  EXPECT_EQ(symbol->type, STT_FUNC);
  EXPECT_EQ(symbol->binding, STB_GLOBAL);
  EXPECT_GT(symbol->size, 0U);
  auto const undefined = file->undefined_symbols();
  EXPECT_EQ(std::count(undefined.begin(), undefined.end(), needed), 1);
}

TEST(ElfFile, SectionsSegmentsAndTheDynamicSectionAreRead) {
  auto const file = ElfFile::open(ELF_SAMPLE);
  ASSERT_TRUE(file) << file.error().message;
  auto const sections = file->sections();
  auto const text = std::find_if(sections.begin(), sections.end(), [](auto const& s) { return s.name == ".text"; });
  ASSERT_NE(text, sections.end());
  EXPECT_NE(text->flags & SHF_EXECINSTR, 0U);
  EXPECT_EQ(text->bytes.size, text->size);
  auto const relocations =
      std::find_if(sections.begin(), sections.end(), [](auto const& s) { return s.type == SHT_RELA; });
  ASSERT_NE(relocations, sections.end());
  EXPECT_FALSE(ElfFile::relocations(*relocations).empty());
  EXPECT_TRUE(ElfFile::relocations(*text).empty());
  auto const segments = file->segments();
  EXPECT_TRUE(std::any_of(segments.begin(), segments.end(), [](auto const& s) { return s.type == PT_GNU_STACK; }));
  auto const dynamic = file->dynamic();
  auto const name = std::find_if(dynamic.begin(), dynamic.end(), [](auto const& d) { return d.tag == DT_SONAME; });
  ASSERT_NE(name, dynamic.end());
  EXPECT_EQ(file->dynamic_text(*name), fs::path(ELF_SAMPLE).filename().string());
}

TEST(ElfFile, FindsExportsByTheHashTable) {
  auto const libc = ElfFile::open("/lib/x86_64-linux-gnu/libc.so.6");
  if (!libc) GTEST_SKIP() << "another C library";
  EXPECT_TRUE(libc->exports("printf"));
  EXPECT_FALSE(libc->exports("printf_of_nobody"));
}

TEST(ElfFile, RefusesWhatIsNone) {
  auto const folder = TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-elf-");
  ASSERT_TRUE(folder);
  ASSERT_TRUE(write_file(folder->path() / "text", std::string(200, 'x')));
  EXPECT_FALSE(ElfFile::open(folder->path() / "text"));
  EXPECT_FALSE(ElfFile::open(folder->path() / "missing"));
}

TEST(ElfFile, SurvivesFilesThatAreCutOffOrDamaged) {
  auto const folder = TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-elf-");
  ASSERT_TRUE(folder);
  auto const bytes = read_file(ELF_SAMPLE, 1 << 22);
  ASSERT_TRUE(bytes);
  auto const read_all = [&](const std::string& content) {
    ASSERT_TRUE(write_file(folder->path() / "cut.so", content));
    auto const file = ElfFile::open(folder->path() / "cut.so");
    if (!file) return;
    [[maybe_unused]] auto const found = file->exports(defined);
    [[maybe_unused]] auto const names = file->undefined_symbols();
    [[maybe_unused]] auto const libraries = file->needed();
    [[maybe_unused]] auto const segments = file->segments();
    for (auto const& section : file->sections()) {
      [[maybe_unused]] auto const relocations = ElfFile::relocations(section);
    }
  };
  for (std::size_t size = 0; size < bytes->size(); size += 197) read_all(bytes->substr(0, size));
  for (std::size_t at = 0; at < bytes->size(); at += 197) {
    std::string damaged = *bytes;
    damaged.replace(at, 8, 8, '\xff');
    read_all(damaged);
  }
}

TEST(NeededLibraries, NamesTheLibraryThatDefinesASymbol) {
  auto const file = ElfFile::open(ELF_SAMPLE);
  ASSERT_TRUE(file) << file.error().message;
  fs::path const sample = ELF_SAMPLE;
  NeededLibraries libraries({sample.parent_path()});
  libraries.add("libmissing.so.1");
  libraries.add(sample.filename().string());
  libraries.add_needed_by(*file);
  auto const found = libraries.find(defined);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->library, sample.filename().string());
  EXPECT_TRUE(libraries.is_missing("libmissing.so.1"));
  EXPECT_FALSE(libraries.find(needed));
  // Not one that a sanitizer's library defines as well.
  auto const from_libc = libraries.find("gnu_get_libc_version");
  ASSERT_TRUE(from_libc);
  EXPECT_EQ(from_libc->library.rfind("libc.so", 0), 0U) << from_libc->library;
}

}  // namespace
}  // namespace cuda_agent::util
