#include "build/tool_environment.hpp"

namespace cuda_agent::build {

std::map<std::string, std::string> tool_environment(const std::vector<std::filesystem::path>& tools,
                                                    const std::filesystem::path& temporary) {
  std::string path;
  for (auto const& tool : tools) path += tool.parent_path().string() + ":";
  path += "/usr/local/bin:/usr/bin:/bin";
  return {{"PATH", path}, {"LC_ALL", "C"}, {"HOME", temporary.string()}, {"TMPDIR", temporary.string()}};
}

}  // namespace cuda_agent::build
