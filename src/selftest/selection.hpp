// Which of the cases are run.
#pragma once

#include <string>
#include <vector>

#include "selftest/case.hpp"

namespace cuda_agent::selftest {

/// Those whose name, with or without its folder, matches a shell pattern.
std::vector<Case> matching(const std::vector<Case>& cases, const std::string& pattern);

/// One exploit for each pair of a layer and a kind of attack (what stands before the colon of its row), and the honest
/// twins of these. Variants, known gaps and, unless `gpu`, what needs a GPU are not chosen.
std::vector<Case> quick(const std::vector<Case>& cases, bool gpu);

/// Each `times` times: all of them, and then again. What will be left out (known gaps and, unless `gpu`, what needs a
/// GPU) once.
std::vector<Case> repeated(const std::vector<Case>& cases, int times, bool gpu);

}  // namespace cuda_agent::selftest
