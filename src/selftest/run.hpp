// Has the cases judged, a few at a time, and looks at what each leaves behind.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cuda_agent/error.hpp"
#include "selftest/answer.hpp"
#include "selftest/case.hpp"
#include "selftest/options.hpp"
#include "selftest/proof.hpp"

namespace cuda_agent::selftest {

enum class State { as_expected, wrong, not_judged, left_out };

struct CaseResult {
  Case one;
  State state = State::left_out;
  Answer answer;
  std::vector<std::string> problems;  ///< what is not as it should be
  Proof proof;                        ///< of its layers, with Options::prove_layers
  std::string left_out;               ///< why it was not judged
  double seconds = 0;
  std::filesystem::path kept;  ///< its workspace, with Options::keep
};

/// What is shown while it goes on.
struct Watcher {
  std::function<void(const Case&)> begins;
  std::function<void(const CaseResult&)> ends;
};

/// The results, in the order of the cases. An exploit that is caught is then proven where that is asked for. A case
/// that could not be judged is tried once more; what nothing catches, as is known, and what needs a GPU that is not
/// there is left out. Must be called from a thread that lives on, in a process that has no other children. Errors:
/// interrupted; environment_error when the first case cannot be judged, as then none can.
Result<std::vector<CaseResult>> run_cases(const std::vector<Case>& cases, const Options& options,
                                          const Watcher& watcher);

}  // namespace cuda_agent::selftest
