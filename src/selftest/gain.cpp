#include "selftest/gain.hpp"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "util/text.hpp"

namespace cuda_agent::selftest {

void Gain::add(const Answer& answer) {
  if (!answer.speedup) return;
  m_estimates.push_back(answer.speedup->estimate);
  m_surely_faster = m_surely_faster || answer.speedup->low > m_limit;
}

bool Gain::is_open() const {
  if (m_surely_faster || m_estimates.empty() || m_estimates.size() >= 3) return false;
  return m_bound == Bound::more_than || m_estimates.size() == 2 || m_estimates.front() > m_limit;
}

std::optional<double> Gain::median() const {
  if (m_estimates.empty()) return std::nullopt;
  auto sorted = m_estimates;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

std::optional<std::string> Gain::problem() const {
  auto const middle = median();
  if (!middle) return "it was not timed, so nobody knows what it gains";
  bool const above = *middle > m_limit;
  if (above == (m_bound == Bound::more_than)) return std::nullopt;
  std::vector<std::string> said;
  said.reserve(m_estimates.size());
  for (auto const one : m_estimates) said.push_back(fmt::format("{:.2f}", one));
  auto const* const form = above ? "{}x eager, expected {} at most" : "{}x eager, expected more than {}";
  return fmt::format(fmt::runtime(form), util::join(said, ", "), m_limit);
}

}  // namespace cuda_agent::selftest
