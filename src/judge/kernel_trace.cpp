#include "judge/kernel_trace.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "exec/seal.hpp"
#include "judge/candidate_seal.hpp"
#include "util/text.hpp"

namespace cuda_agent::judge {
namespace {

// Numbers of the arenas in the traced worker.
constexpr int traced_inputs = 1;
constexpr int traced_init = 2;
constexpr int traced_weights = 3;

constexpr const char* tracing = "tracing the kernels of ModelNew";

}  // namespace

Result<void> KernelTrace::begin(Exchange& exchange, const Subject& subject, util::Deadline deadline) {
  if (auto const ready = m_worker->ready(deadline); !ready) return fail(ready.error());
  auto const filter = exec::seal_filter(exec::Seal::no_new_processes, number_among_others(*m_worker));
  if (!filter) return fail(filter.error());
  nlohmann::json arenas = nlohmann::json::array();
  std::vector<int> descriptors;
  auto const lend = [&](int number, std::unique_ptr<device::Arena> arena) {
    arenas.push_back({{"number", number}, {"bytes", arena->size()}});
    descriptors.push_back(arena->descriptor());
    m_lent.push_back(std::move(arena));
  };

  EncodedValues const& values = exchange.inputs(0);
  device::Span const drawn = exchange.drawn(0);
  auto inputs = exchange.backend().allocate(std::max<std::uint64_t>(drawn.bytes, 1));
  if (!inputs) return fail(inputs.error());
  if (drawn.bytes > 0) {
    if (auto copied = exchange.backend().copy({drawn, {inputs->get(), 0, drawn.bytes}}); !copied) return copied;
  }
  lend(traced_inputs, std::move(*inputs));
  auto init = exchange.copy_of({{"op", "init"}}, subject.init_bytes, "passing on get_init_inputs()");
  if (!init) return fail(init.error());
  if (*init != nullptr) lend(traced_init, std::move(*init));
  nlohmann::json weights = nullptr;
  if (!subject.weights.is_null()) {
    auto state = exchange.copy_of({{"op", "state"}, {"arm", "eager"}, {"names", subject.state_names}},
                                  subject.state_bytes, "passing on the weights");
    if (!state) return fail(state.error());
    if (*state != nullptr) lend(traced_weights, std::move(*state));
    weights = subject.weights;
    weights["arena"] = traced_weights;
  }
  nlohmann::json load = subject.load;
  load["arena"] = traced_init;
  nlohmann::json const bind = {
      {"slot", 0}, {"arena", traced_inputs}, {"at", 0}, {"trees", values.trees}, {"storages", values.storages}};
  return m_worker->post({{"op", "trace"},
                         {"arenas", arenas},
                         {"seal", {{"filter", *filter}, {"devices", true}}},
                         {"load", load},
                         {"weights", weights},
                         {"bind", bind}},
                        descriptors, deadline, tracing);
}

Result<std::vector<TracedKernel>> KernelTrace::finish(const std::vector<KernelResources>& own,
                                                      util::Deadline deadline) {
  auto const reply = m_worker->collect(deadline, tracing);
  m_worker->end();
  if (!reply) return fail(reply.error());
  return read_trace(*reply, own);
}

Result<std::vector<TracedKernel>> read_trace(const nlohmann::json& reply, const std::vector<KernelResources>& own) {
  constexpr std::size_t most_kernels = 500;
  constexpr std::size_t longest_name = 1000;
  std::set<std::string> names;
  for (KernelResources const& one : own) names.insert(one.name);
  std::vector<TracedKernel> kernels;
  try {
    if (!reply.at("sentinel").get<bool>()) {
      return fail(Outcome::environment_error,
                  "torch.profiler sees no kernels on this machine: the sentinel was missed");
    }
    for (auto const& one : reply.at("kernels")) {
      if (kernels.size() == most_kernels) break;
      auto const name = one.at("name").get<std::string>();
      kernels.push_back({.name = util::escape_untrusted(name, longest_name),
                         .calls = one.at("calls").get<std::int64_t>(),
                         .microseconds = std::max(one.at("microseconds").get<double>(), 0.0),
                         .own = names.contains(name)});
    }
  } catch (const nlohmann::json::exception& error) {
    return fail(Outcome::crash, fmt::format("the answer to a trace has another form: {}", error.what()));
  }
  return kernels;
}

}  // namespace cuda_agent::judge
