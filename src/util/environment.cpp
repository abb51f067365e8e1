#include "util/environment.hpp"

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include <unistd.h>

namespace cuda_agent::util {

namespace fs = std::filesystem;

namespace {

bool is_executable_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::optional<std::string> get_env(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::optional<fs::path> find_executable(std::string_view name) {
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string_view::npos) {
    std::error_code error;
    fs::path const path = fs::absolute(name, error);
    if (error || !is_executable_file(path)) return std::nullopt;
    return path.lexically_normal();
  }
  std::string const search = get_env("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (std::string_view rest = search; !rest.empty();) {
    std::size_t const end = std::min(rest.find(':'), rest.size());
    fs::path const folder(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    // A relative entry would make the answer depend on the folder we are in, which may be a candidate's.
    if (!folder.is_absolute()) continue;
    if (fs::path path = folder / name; is_executable_file(path)) return path;
  }
  return std::nullopt;
}

std::map<std::string, std::string> whole_environment() {
  std::map<std::string, std::string> all;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view const text(*entry);
    std::size_t const equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    all.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return all;
}

}  // namespace cuda_agent::util
