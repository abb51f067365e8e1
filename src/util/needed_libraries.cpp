#include "util/needed_libraries.hpp"

#include <utility>

namespace cuda_agent::util {

namespace fs = std::filesystem;

NeededLibraries::NeededLibraries(std::vector<fs::path> folders) : m_folders(std::move(folders)) {
  for (const char* folder : {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu",
                             "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"}) {
    m_folders.emplace_back(folder);
  }
}

void NeededLibraries::add(const std::string& library) {
  if (m_known.insert(library).second) m_waiting.push_back(library);
}

void NeededLibraries::add_needed_by(const ElfFile& file) {
  for (auto const& name : file.needed()) add(name);
}

std::optional<NeededLibraries::Definition> NeededLibraries::find(const std::string& symbol) {
  for (std::size_t i = 0; i < m_libraries.size() || open_next(); ++i) {
    if (auto const found = m_libraries[i].file.find_export(symbol)) return Definition{m_libraries[i].name, *found};
  }
  return std::nullopt;
}

// False when there are no more.
bool NeededLibraries::open_next() {
  while (!m_waiting.empty()) {
    std::string name = m_waiting.front();
    m_waiting.pop_front();
    if (auto file = open(name)) {
      add_needed_by(*file);
      m_libraries.push_back({std::move(name), std::move(*file)});
      return true;
    }
    m_missing.insert(std::move(name));
  }
  return false;
}

std::optional<ElfFile> NeededLibraries::open(const std::string& name) const {
  for (auto const& folder : m_folders) {
    std::error_code error;
    if (!fs::is_regular_file(folder / name, error)) continue;
    if (auto file = ElfFile::open(folder / name)) return std::move(*file);
  }
  return std::nullopt;
}

}  // namespace cuda_agent::util
