#include "judge/subject.hpp"

#include <chrono>

#include <spdlog/fmt/fmt.h>

#include "util/random.hpp"

namespace cuda_agent::judge {

Result<Subject> subject_of(const nlohmann::json& task, const std::string& folder, std::uint64_t seed,
                           Contract contract) {
  try {
    auto const& init = task.at("init");
    auto const& state = task.at("state");
    Subject subject;
    subject.init_bytes = init.at("bytes").get<std::uint64_t>();
    subject.state_bytes = state.at("bytes").get<std::uint64_t>();
    subject.state_names = state.at("names");
    subject.load = {{"op", "load"},
                    {"folder", folder},
                    {"at", 0},
                    {"init", init},
                    {"signature", task.at("signature")},
                    {"seed", util::derived_seed("constructor", seed)},
                    {"eval", contract == Contract::cuda_agent}};
    if (contract == Contract::cuda_agent) subject.weights = {{"op", "weights"}, {"at", 0}, {"state", state}};
    return subject;
  } catch (const nlohmann::json::exception& error) {
    return fail(Outcome::internal_error,
                fmt::format("the reference worker's description of the task is malformed: {}", error.what()));
  }
}

Result<std::int64_t> construct(Exchange& exchange, Worker& candidate, const Subject& subject,
                               const CallLimits& limits) {
  std::int64_t taken = 0;
  auto const ask = [&](nlohmann::json message, int arena, const char* during) -> Result<void> {
    message["arena"] = arena;
    auto const limit =
        util::Deadline::after(std::chrono::duration<double>(limits.candidate_seconds)).earlier(limits.ask);
    auto const before = exchange.backend().free_memory();
    auto const done = candidate.request(message, {}, limit, during);
    if (!done) return fail(done.error());
    if (auto const after = exchange.backend().free_memory(); before && after) {
      taken += static_cast<std::int64_t>(*before - *after);
    }
    return {};
  };
  auto const init = exchange.hand_over({{"op", "init"}}, subject.init_bytes, "passing on get_init_inputs()");
  if (!init) return fail(init.error());
  auto loaded = ask(subject.load, *init, "importing model_new.py and constructing ModelNew");
  if (!loaded) return fail(loaded.error());
  if (subject.weights.is_null()) return taken;
  auto const weights = exchange.hand_over({{"op", "state"}, {"arm", "eager"}, {"names", subject.state_names}},
                                          subject.state_bytes, "passing on the weights");
  if (!weights) return fail(weights.error());
  auto copied = ask(subject.weights, *weights, "copying Model's weights into ModelNew");
  if (!copied) return fail(copied.error());
  return taken;
}

}  // namespace cuda_agent::judge
