#include "judge/probe.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

namespace cuda_agent::judge {
namespace {

/// Everything that ends the ask, whatever was asked.
bool ends_the_ask(const Error& error, const CallLimits& limits) {
  return error.outcome == Outcome::interrupted || limits.ask.expired();
}

class Prober {
 public:
  Prober(Exchange& exchange, Worker& reference, const ProbeOptions& options, std::uint64_t seed,
         Correctness& correctness)
      : m_exchange(exchange), m_reference(reference), m_options(options), m_seed(seed), m_correctness(correctness) {}

  Result<Probe> run() {
    bool ready = false;
    if (!m_options.other_inputs) {
      m_probe.other_inputs = "--only-drawn-inputs";
    } else if (auto done = other_inputs(); !done) {
      return fail(done.error());
    } else {
      ready = *done;
    }
    if (!ready) {
      if (auto done = both(InputKind::drawn); !done) return fail(done.error());
      if (!m_failed.empty()) {
        m_probe.not_precise = m_failed;
        return std::move(m_probe);
      }
    }
    if (auto measured = measure_precision(); !measured) return fail(measured.error());
    return std::move(m_probe);
  }

 private:
  /// True when both arms' last results are those for inputs of other signs, and count.
  Result<bool> other_inputs() {
    for (InputKind const kind : {InputKind::huge, InputKind::large}) {
      if (auto done = both(kind); !done) return fail(as_other(done.error()));
      if (m_failed.empty() || !m_not_finite) break;
    }
    m_probe.other_inputs = m_failed;
    if (!m_failed.empty() && !m_not_finite) return false;
    if (auto done = both(InputKind::signs); !done) return fail(as_other(done.error()));
    if (m_failed.empty() && !m_probe.other_inputs.empty())
      m_probe.other_inputs = "other signs only: " + m_probe.other_inputs;
    return m_failed.empty();
  }

  static Error as_other(Error error) {
    if (error.outcome == Outcome::wrong || error.outcome == Outcome::crash || error.outcome == Outcome::timeout) {
      error.message = "inputs of other signs and sizes than get_inputs draws: " + error.message;
      error.hints.insert(error.hints.begin(),
                         "a candidate is to be right for every value of the stated shapes; where the task's own values "
                         "are the only ones that make sense: --only-drawn-inputs");
    }
    return error;
  }

  /// Eager and candidate on one new draw. What the task's model cannot do stands in m_failed; errors are the
  /// candidate's.
  Result<void> both(InputKind kind) {
    m_failed.clear();
    m_not_finite = false;
    auto const seed = m_seed + static_cast<std::uint64_t>(kind);
    if (auto drawn = m_exchange.draw(seed, 1, kind); !drawn) return excused(drawn.error());
    auto eager = m_exchange.call(Arm::eager, m_options.limits.ask, "running the task's own model");
    if (!eager) return excused(eager.error());
    auto const kept = m_exchange.inputs_unchanged(Arm::eager);
    if (!kept) return excused(kept.error());
    auto const itself = compared(Arm::eager, *eager, Arm::eager, *eager);
    if (!itself) return excused(itself.error());
    if (kind != InputKind::drawn && !counts(*itself)) return {};
    auto const limit = util::Deadline::after(std::chrono::duration<double>(m_options.limits.candidate_seconds))
                           .earlier(m_options.limits.ask);
    auto candidate = m_exchange.call(Arm::candidate, limit, "running ModelNew.forward");
    if (!candidate) return fail(candidate.error());
    m_single = itself->single_rms_error.has_value();
    m_eager = std::move(*eager);
    m_candidate = std::move(*candidate);
    auto const worst = m_correctness.worst;
    double const worst_rms_scaled = m_correctness.worst_rms_scaled;
    auto checked = check_candidate(m_exchange, m_eager, m_candidate, !*kept, m_options.tolerance, 0, m_correctness);
    if (!checked) return checked;
    // How far off it is for values as large as these says nothing about the task's own.
    m_correctness.worst = worst;
    m_correctness.worst_rms_scaled = worst_rms_scaled;
    return checked;
  }

  Result<void> excused(const Error& error) {
    if (ends_the_ask(error, m_options.limits)) return fail(error);
    m_failed = fmt::format("the task's own model cannot take them: {}", error.message);
    return {};
  }

  bool counts(const OutputCheck& itself) {
    bool const single = std::all_of(itself.tolerances.begin(), itself.tolerances.end(), [](auto const& one) {
      return one.first == "float32" || one.first == "bool" || one.first.find("int") != std::string::npos;
    });
    if (!single) m_failed = "results are not of single precision";
    m_not_finite = single && !itself.all_finite;
    if (m_not_finite) m_failed = "the task's own model gives NaN or infinity for them";
    return m_failed.empty();
  }

  Result<OutputCheck> compared(Arm expected, const ArmCall& right, Arm got, const ArmCall& made) {
    return check_output(m_exchange.backend(), right.outputs.front(), m_exchange.kept(expected, 0), made.outputs.front(),
                        m_exchange.kept(got, 0), m_options.tolerance);
  }

  Result<void> measure_precision() {
    auto const unmeasured = [this](const Error& error) -> Result<void> {
      if (ends_the_ask(error, m_options.limits)) return fail(error);
      m_probe.not_precise = fmt::format("the task's model did not run in float64: {}", error.message);
      return {};
    };
    if (!m_single) {
      m_probe.not_precise = "no result is of single precision";
      return {};
    }
    if (!m_options.float64) {
      m_probe.not_precise = "the task's model in float64 does not fit into the GPU's memory beside the rest";
      return {};
    }
    int const generation = m_exchange.generation();
    auto const made = m_reference.request({{"op", "exact"}}, {}, m_options.limits.ask, "making a float64 model");
    if (!made) return unmeasured(made.error());
    auto const exact = m_exchange.call(Arm::exact, m_options.limits.ask, "running the task's own model in float64");
    if (!exact) return unmeasured(exact.error());
    if (m_exchange.generation() != generation) {
      m_probe.not_precise = "the task's model gives larger results in float64";
      return {};
    }
    auto const eager = compared(Arm::exact, *exact, Arm::eager, m_eager);
    if (!eager) return unmeasured(eager.error());
    auto const candidate = compared(Arm::exact, *exact, Arm::candidate, m_candidate);
    if (!candidate) return unmeasured(candidate.error());
    if (!eager->single_rms_error || !candidate->single_rms_error) {
      m_probe.not_precise = "no result is of single precision";
      return {};
    }
    PrecisionReport report;
    report.rule = to_string(m_options.rule);
    report.eager = *eager->single_rms_error;
    report.candidate = *candidate->single_rms_error;
    report.eager_class = precision_class(report.eager);
    report.candidate_class = precision_class(report.candidate, report.eager);
    report.lower = is_lower_precision(m_options.rule, report.eager, report.candidate);
    m_probe.precision = report;
    m_correctness.precision = report;
    if (!report.lower || report.candidate_class != few_bits || m_options.tolerance.off) return {};
    m_correctness.mismatch =
        fmt::format("precision: the error against float64 is {:.2g} of the results' RMS, eager's {:.2g}",
                    report.candidate, report.eager);
    return fail(Outcome::wrong, m_correctness.mismatch,
                {"compute in single precision; --precision any accepts whatever the tolerance allows"});
  }

  Exchange& m_exchange;
  Worker& m_reference;
  const ProbeOptions& m_options;
  std::uint64_t m_seed;
  Correctness& m_correctness;
  std::string m_failed;       ///< why the last draw does not count
  bool m_not_finite = false;  ///< that is why
  bool m_single = false;      ///< some result is of single precision
  ArmCall m_eager;
  ArmCall m_candidate;
  Probe m_probe;
};

}  // namespace

Result<Probe> probe(Exchange& exchange, Worker& reference, const ProbeOptions& options, std::uint64_t seed,
                    Correctness& correctness) {
  return Prober(exchange, reference, options, seed, correctness).run();
}

}  // namespace cuda_agent::judge
