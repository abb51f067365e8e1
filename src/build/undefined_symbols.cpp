#include "build/undefined_symbols.hpp"

#include <algorithm>
#include <cctype>

#include "build/ptxas.hpp"
#include "util/elf_file.hpp"
#include "util/needed_libraries.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

// The interpreter itself defines these; it may be linked statically, so that there is no library to look into.
bool is_python(const std::string& symbol) { return starts_with(symbol, "Py") || starts_with(symbol, "_Py"); }

bool is_driver_call(const std::string& symbol) {
  return symbol.size() > 2 && starts_with(symbol, "cu") && std::isupper(static_cast<unsigned char>(symbol[2])) != 0;
}

void find_users(std::vector<UndefinedSymbol>& symbols, const std::vector<std::string>& mangled,
                const std::vector<std::pair<std::string, fs::path>>& objects) {
  for (auto const& [source, path] : objects) {
    auto const object = util::ElfFile::open(path);
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
  auto const file = util::ElfFile::open(library);
  if (!file) return fail(file.error());
  util::NeededLibraries libraries(folders);
  libraries.add_needed_by(*file);
  std::vector<UndefinedSymbol> undefined;
  std::vector<std::string> mangled;
  for (auto& name : file->undefined_symbols()) {
    if (is_python(name) || libraries.find(name)) continue;
    if (is_driver_call(name) && libraries.is_missing("libcuda.so.1")) continue;
    undefined.push_back({demangle(name), {}});
    mangled.push_back(std::move(name));
  }
  if (!undefined.empty()) find_users(undefined, mangled, objects);
  return undefined;
}

}  // namespace cuda_agent::build
