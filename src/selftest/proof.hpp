// Whether the layers that a case names are what catches it: each is put to the test by what happens without the others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "selftest/answer.hpp"
#include "selftest/case.hpp"

namespace cuda_agent::selftest {

/// What one ask of the judge about a case is to show.
struct Part {
  enum class Kind {
    caught,   ///< that it ends as expected
    alone,    ///< that one layer catches it with the others switched off; of the policy, whether it does
    through,  ///< that it gets through with all layers switched off that catch it
  };

  Kind kind = Kind::caught;
  std::string layer{};  ///< of `alone`

  bool operator==(const Part&) const = default;
};

/// The judge's arguments that switch layers off for a part.
std::vector<std::string> switched_off(const Case& one, const Part& part);

/// Those of its layers that cannot be switched off; then there is no `through`.
std::vector<std::string> not_switchable(const Case& one);

/// What is asked of the layers of an exploit after `caught`, in this order. Nothing for an honest case.
std::vector<Part> parts_of_proof(const Case& one);

/// What is wrong with a verdict in a part of a proof, in sentences; empty when nothing is. What it gains is another
/// question (gain.hpp).
std::vector<std::string> disproved(const Case& one, const Part& part, const Answer& answer);

/// What became of a proof.
struct Proof {
  enum class State { not_tried, proven, not_proven, not_switchable };

  State state = State::not_tried;
  std::optional<Answer> policy;   ///< the answer of the policy alone
  std::optional<Answer> through;  ///< the answer of that part
  std::optional<double> gain;     ///< in it, over eager: of an exploit that is bound and not refused
  std::vector<std::string> problems;
  double seconds = 0;  ///< of all parts
};

}  // namespace cuda_agent::selftest
