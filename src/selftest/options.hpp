// What all asks of a selftest have in common.
#pragma once

#include <filesystem>
#include <string>

namespace cuda_agent::selftest {

struct Options {
  std::filesystem::path binary;  ///< the judge
  std::filesystem::path tasks;   ///< what the cases start from
  std::string python;            ///< the interpreter with torch; empty: found by the judge
  int jobs = 1;
  bool gpu = false;           ///< there is one
  bool keep = false;          ///< the workspaces stay
  bool prove_layers = false;  ///< exploits are judged with their layers switched off, too
};

}  // namespace cuda_agent::selftest
