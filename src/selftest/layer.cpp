#include "selftest/layer.hpp"

#include <algorithm>

#include "util/text.hpp"

namespace cuda_agent::selftest {

namespace {

std::vector<Layer>::const_iterator find_layer(std::string_view name) {
  return std::find_if(all_layers().begin(), all_layers().end(), [&](const Layer& one) { return one.name == name; });
}

/// Whether the arguments hold a flag already: the judge takes each once.
bool has_flag(const std::vector<std::string>& arguments, const std::string& flag) {
  return std::find(arguments.begin(), arguments.end(), flag) != arguments.end();
}

}  // namespace

const std::vector<Layer>& all_layers() {
  static const std::vector<Layer> layers{
      {"comparison", {"--without", "comparison"}},
      {"other-inputs", {"--only-drawn-inputs"}},
      {"precision", {"--precision", "any"}},
      {"fresh-inputs", {"--without", "fresh-inputs"}},
      {"seeds", {}},
      {"process", {}},
      {"sandbox", {}},
      {"seal", {"--without", "seal"}},
      {"stopping", {"--without", "stopping"}},
      {"clock", {}},
      {"baseline", {}},
      {"limits", {}},
      {"printing", {}},
      {"build", {}},
      {"snapshot", {}},
      {"policy", {"--policy", "none"}},
  };
  return layers;
}

std::string layer_names() {
  std::vector<std::string> names;
  names.reserve(all_layers().size());
  for (auto const& one : all_layers()) names.emplace_back(one.name);
  return util::join(names, ", ");
}

bool is_layer(std::string_view name) { return find_layer(name) != all_layers().end(); }

Switches switches_of(const std::vector<std::string>& layers) {
  Switches switches;
  for (auto const& name : layers) {
    auto const& off = find_layer(name)->off;
    if (off.empty() || has_flag(switches.arguments, off.front())) {
      switches.missing.push_back(name);
    } else {
      switches.arguments.insert(switches.arguments.end(), off.begin(), off.end());
    }
  }
  return switches;
}

}  // namespace cuda_agent::selftest
