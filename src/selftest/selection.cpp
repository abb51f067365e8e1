#include "selftest/selection.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fnmatch.h>

namespace cuda_agent::selftest {

std::vector<Case> matching(const std::vector<Case>& cases, const std::string& pattern) {
  std::vector<Case> chosen;
  for (auto const& one : cases) {
    for (auto const& name : {one.name, one.folder.filename().string()}) {
      if (::fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
      chosen.push_back(one);
      break;
    }
  }
  return chosen;
}

std::vector<Case> quick(const std::vector<Case>& cases, bool gpu) {
  std::vector<Case> chosen;
  std::set<std::pair<std::string, std::string>> seen;
  std::set<std::string> twins;
  for (auto const& one : cases) {  // exploits come first
    if (!one.variant_of.empty() || !one.gap.empty() || (one.needs_cuda && !gpu)) continue;
    auto const attack = one.row.substr(0, one.row.find(':'));
    auto const wanted = one.kind == Kind::exploit ? seen.emplace(one.layer, attack).second
                                                  : twins.contains(one.folder.filename().string());
    if (!wanted) continue;
    chosen.push_back(one);
    twins.insert(one.honest_twin);
  }
  return chosen;
}

std::vector<Case> repeated(const std::vector<Case>& cases, int times, bool gpu) {
  auto all = cases;
  for (int i = 1; i < times; ++i) {
    std::copy_if(cases.begin(), cases.end(), std::back_inserter(all),
                 [&](const Case& one) { return !one.known_gap() && (gpu || !one.needs_cuda); });
  }
  return all;
}

}  // namespace cuda_agent::selftest
