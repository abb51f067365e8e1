#include "build/dependencies.hpp"

#include <set>

namespace cuda_agent::build {

namespace {

// One word, from `at` on; moves `at` behind it. Stops at white space or the end of the rule.
std::string next_word(std::string_view text, std::size_t& at) {
  std::string word;
  while (at < text.size()) {
    char const c = text[at];
    char const next = at + 1 < text.size() ? text[at + 1] : '\0';
    if (c == '\\' && (next == ' ' || next == '#' || next == '\\')) {
      word += next;
      at += 2;
    } else if (c == '$' && next == '$') {
      word += '$';
      at += 2;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || (c == '\\' && (next == '\n' || next == '\r'))) {
      break;
    } else {
      word += c;
      ++at;
    }
  }
  return word;
}

}  // namespace

std::vector<std::string> parse_dependencies(std::string_view makefile) {
  std::vector<std::string> files;
  std::set<std::string> seen;
  bool in_prerequisites = false;
  std::size_t at = 0;
  while (at < makefile.size()) {
    char const c = makefile[at];
    if (c == '\\' || c == ' ' || c == '\t' || c == '\r') {
      ++at;
      if (c == '\\' && at < makefile.size() && makefile[at] == '\n') ++at;
      continue;
    }
    if (c == '\n') {
      if (in_prerequisites) break;
      ++at;
      continue;
    }
    std::string word = next_word(makefile, at);
    if (!in_prerequisites) {
      in_prerequisites = !word.empty() && word.back() == ':';
      if (word.empty() && at < makefile.size()) ++at;
      continue;
    }
    if (!word.empty() && seen.insert(word).second) files.push_back(std::move(word));
  }
  return files;
}

}  // namespace cuda_agent::build
