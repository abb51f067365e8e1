// What a case leaves behind. There must be nothing.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "util/deadline.hpp"

namespace cuda_agent::selftest {

/// Every path below a folder with what it holds, the judge's own state left out.
std::map<std::string, std::string> listing(const std::filesystem::path& folder);

/// The paths that are in one of two listings only, or hold something else.
std::vector<std::string> changed_paths(const std::map<std::string, std::string>& before,
                                       const std::map<std::string, std::string>& after);

/// What exploits have left in places that all can write to. By agreement it has a certain word in its name.
std::set<std::string> litter();

/// Whether nobody holds the workspace.
bool lock_is_free(const std::filesystem::path& workspace);

/// Names of processes that judges which have ended left to this one, and that are there at the deadline still: what
/// ends with its judge takes a moment.
std::vector<std::string> left_running(util::Deadline deadline);

}  // namespace cuda_agent::selftest
