// The files that `init` puts into a workspace.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cli/installation.hpp"
#include "cuda_agent/error.hpp"

namespace cuda_agent::cli {

/// One file or link to be.
struct NewFile {
  std::string content;  ///< of a file; the target of a link
  bool link = false;
  bool executable = false;
};

/// Path relative to the workspace → what belongs there.
using NewFiles = std::map<std::string, NewFile>;

/// What every workspace has: SKILL.md, the links to it for agents, utils/, binding.cpp, binding_registry.h, .gitignore.
Result<NewFiles> common_files(const Installation& installation);

/// The example workspace: model.py, model_new.py, kernels/.
Result<NewFiles> example_files(const Installation& installation);

/// Those of `files` that are there with another content.
std::vector<std::string> conflicts(const NewFiles& files, const std::filesystem::path& folder);

/// Writes `files` below `folder`, replacing what is there. Errors: environment_error.
Result<void> write_files(const NewFiles& files, const std::filesystem::path& folder);

}  // namespace cuda_agent::cli
