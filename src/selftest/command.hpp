// How the judge is asked about a case.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "selftest/case.hpp"

namespace cuda_agent::selftest {

/// The arguments of `binary`, with those that switch layers off. `python` may be empty.
std::vector<std::string> judge_command(const Case& one, const std::vector<std::string>& off,
                                       const std::filesystem::path& binary, const std::filesystem::path& workspace,
                                       const std::string& python);

/// Its environment: the caller's but for what would change a verdict or its looks.
std::map<std::string, std::string> judge_environment();

}  // namespace cuda_agent::selftest
