// objects.json: which symbols an extension may import, by who provides them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cuda_agent/error.hpp"

namespace cuda_agent::policy {

/// Patterns are those of fnmatch(3), over qualified names (objects_names.hpp).
using Patterns = std::vector<std::string>;

bool matches(const Patterns& patterns, const std::string& name);

struct Refusal {
  std::string rule;
  Patterns symbols;
  std::string why;      ///< goes on a sentence: "X refers to Y, which ..."
  std::string instead;  ///< a sentence
};

/// Symbols that are judged alike: those of some libraries, or of some names whoever provides them.
struct SymbolGroup {
  std::string name;
  Patterns symbols;
  Patterns libraries;
  std::vector<Refusal> refuse;  ///< asked first
  Patterns allow;               ///< asked second
  std::vector<Refusal> rest;    ///< asked last; empty: what is left is allowed
};

struct ObjectRules {
  std::vector<SymbolGroup> groups;
  Refusal libraries;        ///< of symbols from a library that no group has; {library} stands for its name
  Refusal unknown;          ///< of symbols that nobody provides
  Patterns needed;          ///< libraries that an extension may be linked with
  Patterns constructors;    ///< functions that compilers themselves run before main
  Patterns linker_symbols;  ///< exports that come from the linker
};

/// Errors (internal_error): what is wrong, and in which group.
Result<ObjectRules> parse_object_rules(std::string_view text);

/// The rules that are built in.
Result<ObjectRules> object_rules();

/// nullptr: allowed.
const Refusal* refusal_of(const SymbolGroup& group, const std::string& name);

}  // namespace cuda_agent::policy
