// The files that a compiler says it has read: the make rule that -MD -MF writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cuda_agent::build {

/// The prerequisites of the first rule, in order, each once, with make's escapes ("\ ", "\#", "$$", line ends) undone.
std::vector<std::string> parse_dependencies(std::string_view makefile);

}  // namespace cuda_agent::build
