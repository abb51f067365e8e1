// The process's environment.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace cuda_agent::util {

/// None when unset; an empty value is a value.
std::optional<std::string> get_env(const char* name);

/// The absolute path of an executable regular file: `name` itself when it holds a slash, else the first hit in PATH
/// (/usr/local/bin:/usr/bin:/bin when PATH is unset). Empty and relative entries of PATH are skipped.
std::optional<std::filesystem::path> find_executable(std::string_view name);

std::map<std::string, std::string> whole_environment();

}  // namespace cuda_agent::util
