// What a process of root's may do that has no capabilities: it still is the owner of root's files, and no more.
#pragma once

#include <filesystem>
#include <vector>

namespace cuda_agent::exec {

/// The files and folders below `folder` that others than their owner and group may not read, topmost only; links are
/// not followed. A sandbox that root starts runs as the owner of root's files and would see them.
std::vector<std::filesystem::path> private_places(const std::filesystem::path& folder);

/// The topmost folder on the way to `path`, or itself, that root could not enter without capabilities; empty: none.
std::filesystem::path closed_to_root(const std::filesystem::path& path);

}  // namespace cuda_agent::exec
