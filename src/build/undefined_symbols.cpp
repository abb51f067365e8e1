#include "build/undefined_symbols.hpp"

#include <algorithm>
#include <cctype>
#include <deque>
#include <optional>
#include <set>

#include "build/elf_file.hpp"
#include "build/ptxas.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

// The libraries that a shared object needs, in the order in which the dynamic linker would search them.
class NeededLibraries {
 public:
  explicit NeededLibraries(const std::vector<fs::path>& folders) : m_folders(folders) {
    for (const char* folder : {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
                               "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"}) {
      m_folders.emplace_back(folder);
    }
  }

  void add_needed_by(const ElfFile& file) {
    for (auto& name : file.needed()) {
      if (m_known.insert(name).second) m_waiting.push_back(std::move(name));
    }
  }

  bool define(const std::string& symbol) {
    for (std::size_t i = 0; i < m_libraries.size() || open_next(); ++i) {
      if (m_libraries[i].exports(symbol)) return true;
    }
    return false;
  }

  bool is_missing(const std::string& library) const { return m_missing.count(library) != 0; }

 private:
  // Opens as many as needed only: most symbols are found in the first few. False when there are no more.
  bool open_next() {
    while (!m_waiting.empty()) {
      std::string const name = m_waiting.front();
      m_waiting.pop_front();
      if (auto file = find(name)) {
        add_needed_by(*file);
        m_libraries.push_back(std::move(*file));
        return true;
      }
      m_missing.insert(name);
    }
    return false;
  }

  std::optional<ElfFile> find(const std::string& name) const {
    for (auto const& folder : m_folders) {
      std::error_code error;
      if (!fs::is_regular_file(folder / name, error)) continue;
      if (auto file = ElfFile::open(folder / name)) return std::move(*file);
    }
    return std::nullopt;
  }

  std::vector<fs::path> m_folders;
  std::set<std::string> m_known;
  std::set<std::string> m_missing;
  std::deque<std::string> m_waiting;
  std::deque<ElfFile> m_libraries;
};

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

// The interpreter itself defines these; it may be linked statically, so that there is no library to look into.
bool is_python(const std::string& symbol) { return starts_with(symbol, "Py") || starts_with(symbol, "_Py"); }

bool is_driver_call(const std::string& symbol) {
  return symbol.size() > 2 && starts_with(symbol, "cu") && std::isupper(static_cast<unsigned char>(symbol[2])) != 0;
}

void find_users(std::vector<UndefinedSymbol>& symbols, const std::vector<std::string>& mangled,
                const std::vector<std::pair<std::string, fs::path>>& objects) {
  for (auto const& [source, path] : objects) {
    auto const object = ElfFile::open(path);
    if (!object) continue;
    auto const names = object->undefined_symbols();
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      if (std::find(names.begin(), names.end(), mangled[i]) != names.end()) symbols[i].used_by.push_back(source);
    }
  }
}

}  // namespace

Result<std::vector<UndefinedSymbol>> find_undefined_symbols(
    const fs::path& library, const std::vector<std::pair<std::string, fs::path>>& objects,
    const std::vector<fs::path>& folders) {
  auto const file = ElfFile::open(library);
  if (!file) return fail(file.error());
  NeededLibraries libraries(folders);
  libraries.add_needed_by(*file);
  std::vector<UndefinedSymbol> undefined;
  std::vector<std::string> mangled;
  for (auto& name : file->undefined_symbols()) {
    if (is_python(name) || libraries.define(name)) continue;
    if (is_driver_call(name) && libraries.is_missing("libcuda.so.1")) continue;
    undefined.push_back({demangle(name), {}});
    mangled.push_back(std::move(name));
  }
  if (!undefined.empty()) find_users(undefined, mangled, objects);
  return undefined;
}

}  // namespace cuda_agent::build
