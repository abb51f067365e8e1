// What of a folder is not for everybody.
#pragma once

#include <filesystem>
#include <vector>

namespace cuda_agent::exec {

/// The files and folders below `folder` that others than their owner and group may not read, topmost only; links are
/// not followed. A sandbox that root starts runs as the owner of root's files and would see them.
std::vector<std::filesystem::path> private_places(const std::filesystem::path& folder);

}  // namespace cuda_agent::exec
