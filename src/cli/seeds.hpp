// The seeds of an ask as verdicts print them and --seed takes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "judge/judge.hpp"

namespace cuda_agent::cli {

struct Seeds {
  std::uint64_t of_inputs = 0;
  std::uint64_t of_constructors = 0;

  void set(judge::Options& options) const;
};

/// "S", or "S/C" where the models were constructed under another seed than inputs were drawn: decimal digits only. None
/// for anything else.
std::optional<Seeds> seeds_in(std::string_view text);

}  // namespace cuda_agent::cli
