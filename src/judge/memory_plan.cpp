#include "judge/memory_plan.hpp"

#include <spdlog/fmt/fmt.h>

namespace cuda_agent::judge {

std::string in_words(std::uint64_t bytes) {
  constexpr double giga = 1e9;
  auto const size = static_cast<double>(bytes);
  return size >= giga ? fmt::format("{:.1f} GB", size / giga) : fmt::format("{:.0f} MB", size / 1e6);
}

MemoryPlan plan_memory(const MemoryFacts& facts) {
  MemoryPlan plan;
  plan.taken = 3 * facts.inputs + 2 * facts.results + facts.model;
  std::uint64_t const kept = facts.timed ? 1 + static_cast<std::uint64_t>(facts.baselines) : 1;
  plan.still = facts.inputs + facts.results + kept * facts.results + facts.model;
  plan.probe = 3 * facts.inputs + 2 * facts.model + facts.results;
  plan.probe_fits = plan.still + plan.probe <= facts.free;
  return plan;
}

Result<void> check_memory(const MemoryFacts& facts) {
  MemoryPlan const plan = plan_memory(facts);
  if (plan.still <= facts.free) return {};
  return fail(
      Outcome::environment_error,
      fmt::format("the GPU has too little free memory: this task takes {} in all, {} of it from now on, and {} are "
                  "free (inputs {}, results {}, the model {})",
                  in_words(plan.taken + plan.still), in_words(plan.still), in_words(facts.free), in_words(facts.inputs),
                  in_words(facts.results), in_words(facts.model)),
      {"end other programs on this GPU (nvidia-smi), take one with more memory, or judge a task with smaller inputs"});
}

}  // namespace cuda_agent::judge
