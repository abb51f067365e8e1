// The layers of protection that catch exploits, and how the judge is told to do without one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cuda_agent::selftest {

struct Layer {
  std::string_view name;         ///< as in a case.json
  std::vector<std::string> off;  ///< the judge's arguments that switch it off; empty: it cannot be
};

/// In the order in which docs/exploits.md explains them.
const std::vector<Layer>& all_layers();

/// "comparison, other-inputs, …"
std::string layer_names();

bool is_layer(std::string_view name);

/// What switches off several layers at once.
struct Switches {
  std::vector<std::string> arguments;  ///< of the judge
  std::vector<std::string> missing;    ///< layers that cannot be switched off, or not beside those before them
};

/// `layers`: names that is_layer() knows.
Switches switches_of(const std::vector<std::string>& layers);

}  // namespace cuda_agent::selftest
