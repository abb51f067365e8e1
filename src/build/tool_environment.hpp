// The exact environment that tools run in: nothing of the caller's that could change what they produce.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace cuda_agent::build {

/// PATH (the tools' folders, then the system's), the C locale, HOME and TMPDIR. CFLAGS, CPATH, NVCC_APPEND_FLAGS and
/// their like are absent.
std::map<std::string, std::string> tool_environment(const std::vector<std::filesystem::path>& tools,
                                                    const std::filesystem::path& temporary);

}  // namespace cuda_agent::build
