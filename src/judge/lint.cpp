#include "judge/lint.hpp"

#include <utility>

#include <spdlog/fmt/fmt.h>

#include "util/random.hpp"

namespace cuda_agent::judge {
namespace {

/// The layout of a drawn input in its slot; nothing for what is not a tensor.
std::optional<device::TensorLayout> input_layout(const EncodedValues& values, const nlohmann::json& tree) {
  try {
    if (tree.at("kind") != "tensor") return std::nullopt;
    auto const dtype = device::parse_dtype(tree.at("dtype").get<std::string>());
    if (!dtype) return std::nullopt;
    device::TensorLayout layout;
    layout.dtype = *dtype;
    layout.shape = tree.at("shape").get<std::vector<std::int64_t>>();
    layout.stride = tree.at("stride").get<std::vector<std::int64_t>>();
    auto const& storage = values.storages.at(tree.at("storage").get<std::size_t>());
    layout.offset = storage.at("at").get<std::uint64_t>() +
                    tree.at("offset").get<std::uint64_t>() * device::item_size(layout.dtype);
    return layout;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

/// A single value of a narrow range is the same in two draws, within tolerance, one time in ten or so.
constexpr int draws = 8;

class Linter {
 public:
  Linter(Exchange& exchange, util::Deadline deadline) : m_exchange(exchange), m_deadline(deadline) {}

  Result<TaskFacts> lint(std::uint64_t seed) {
    util::SplitMix64 seeds(seed);
    if (auto drawn = m_exchange.draw(seeds(), 1); !drawn) return fail(drawn.error());
    auto first = call();
    if (!first) return fail(first.error());
    m_first = std::move(first->outputs.front());
    if (auto remembered = remember(); !remembered) return fail(remembered.error());
    if (auto done = find_guessable(); !done) return fail(done.error());

    auto again = same_as_first();
    if (!again) return fail(again.error());
    if (!again->ok) {
      found("nondeterministic", fmt::format("two runs of Model on the same inputs differ: {}", again->sentence));
    }
    auto const constant = is_constant(seeds);
    if (!constant) return fail(constant.error());
    if (*constant) {
      found("degenerate", fmt::format("Model returns the same on {} different draws of its inputs", draws));
    }
    m_facts.output = m_first;
    return std::move(m_facts);
  }

 private:
  Result<ArmCall> call() {
    auto made = m_exchange.call(Arm::eager, m_deadline, "running the task's own model");
    if (made) m_facts.eager_microseconds = made->microseconds;
    return made;
  }

  /// A result of few values may be the same by chance: once that it differs is enough.
  Result<bool> is_constant(util::SplitMix64& seeds) {
    for (int more = 1; more < draws; ++more) {
      if (auto drawn = m_exchange.draw(seeds(), 1); !drawn) return fail(drawn.error());
      auto const other = same_as_first();
      if (!other) return fail(other.error());
      bool const has_inputs = m_exchange.inputs(0).bytes > 0;
      if (!other->ok || !has_inputs || tensors_of(m_first).empty() || m_all_zero) return false;
    }
    return true;
  }

  /// Keeps the first result apart: the next call's takes its place.
  Result<void> remember() {
    device::Span const from = m_exchange.kept(Arm::eager, 0);
    auto arena = m_exchange.backend().allocate_private(from.bytes);
    if (!arena) return fail(arena.error());
    m_memory = std::move(*arena);
    m_remembered = {m_memory.get(), 0, from.bytes};
    return m_exchange.backend().copy({from, m_remembered});
  }

  Result<OutputCheck> same_as_first() {
    auto const next = call();
    if (!next) return fail(next.error());
    return check_output(m_exchange.backend(), m_first, m_remembered, next->outputs.front(),
                        m_exchange.kept(Arm::eager, 0), {});
  }

  Result<void> find_guessable() {
    auto const self = check_output(m_exchange.backend(), m_first, m_remembered, m_first, m_remembered, {});
    if (!self) return fail(self.error());
    auto const leaves = tensors_of(m_first);
    std::int64_t elements = 0;
    for (OutputLeaf const& leaf : leaves) elements += device::numel(*leaf.node->tensor);
    m_all_zero = elements > 0 && self->all_zero;
    if (m_all_zero) found("degenerate", "every value that Model returns is zero");
    if (elements == 0) found("degenerate", "Model returns no values at all");
    if (m_all_zero || leaves.size() != 1) return {};
    return find_returned_input(*leaves.front().node->tensor);
  }

  Result<void> find_returned_input(const device::TensorLayout& output) {
    EncodedValues const& inputs = m_exchange.inputs(0);
    device::CompareOptions options;
    options.rtol = options.atol = 1e-2;
    for (std::size_t i = 0; i < inputs.trees.size(); ++i) {
      auto const layout = input_layout(inputs, inputs.trees[i]);
      if (!layout || layout->dtype != output.dtype || layout->shape != output.shape) continue;
      auto const same = m_exchange.backend().compare(m_remembered, output, m_exchange.drawn(0), *layout, options);
      if (!same) return fail(same.error());
      if (same->ok()) found("degenerate", fmt::format("Model returns its input {} as it is", i));
    }
    return {};
  }

  void found(const char* kind, std::string message) { m_facts.findings.push_back({kind, std::move(message)}); }

  Exchange& m_exchange;
  util::Deadline m_deadline;
  TaskFacts m_facts;
  OutputNode m_first;
  std::unique_ptr<device::Arena> m_memory;
  device::Span m_remembered;
  bool m_all_zero = false;
};

}  // namespace

Result<TaskFacts> lint_task(Exchange& exchange, std::uint64_t seed, util::Deadline deadline) {
  return Linter(exchange, deadline).lint(seed);
}

}  // namespace cuda_agent::judge
