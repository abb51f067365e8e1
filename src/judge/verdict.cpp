#include "cuda_agent/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "util/text.hpp"

namespace cuda_agent {
namespace {

using nlohmann::json;

// Longer texts were cut where they were captured; this only keeps a verdict from growing without bound.
constexpr std::size_t longest_text = std::size_t{1} << 20U;

/// Valid UTF-8 whatever came in: dump() throws on anything else.
std::string text(std::string_view raw) { return util::escape_untrusted(raw, longest_text); }

json texts(const std::vector<std::string>& raw) {
  json list = json::array();
  for (const std::string& item : raw) {
    list.push_back(text(item));
  }
  return list;
}

json texts(const std::map<std::string, std::string>& raw) {
  json object = json::object();
  for (const auto& [key, value] : raw) {
    object[text(key)] = text(value);
  }
  return object;
}

/// A path of `Verdict::not_measured` as a JSON Pointer (RFC 6901): "speed.ratios" and "speed/ratios" are taken too.
std::string pointer(std::string path) {
  if (path.starts_with('/')) {
    return path;
  }
  std::replace(path.begin(), path.end(), '.', '/');
  return "/" + path;
}

constexpr const char* not_told_apart = "the cost of launches is not told apart on this device";

/// Builds the JSON and remembers why which value is null.
class Writer {
 public:
  explicit Writer(const Verdict& verdict) : m_verdict(verdict) {
    for (const auto& [path, reason] : verdict.not_measured) {
      m_reasons.emplace(pointer(path), reason);
    }
  }

  json write() {
    const Verdict& v = m_verdict;
    json out = {
        {"schema", "cuda-agent/verdict/1"},
        {"version", CUDA_AGENT_VERSION},
        {"command", text(v.command)},
        {"time", text(v.time)},
        {"workspace", text(v.workspace)},
        {"outcome", to_string(v.outcome)},
        {"fault", to_string(v.fault)},
        {"exit_code", exit_code(v.outcome)},
        {"message", text(v.message)},
        {"hints", texts(v.hints)},
        {"detail", text(v.detail)},
        {"reward", reward()},
        {"task", task()},
        {"candidate", candidate()},
        {"policy", v.policy ? policy(*v.policy) : missing("/policy", stage_reason())},
        {"build", v.build ? build(*v.build) : missing("/build", stage_reason())},
        {"correctness", v.correctness ? correctness(*v.correctness) : missing("/correctness", stage_reason())},
        {"speed", v.speed ? speed(*v.speed) : missing("/speed", stage_reason())},
        {"grade", v.grade ? grade(*v.grade) : missing("/grade", "only `grade` gives one")},
        {"seed", v.seed.empty() ? missing("/seed", "no inputs were drawn") : json(text(v.seed))},
        {"signature", missing("/signature", "only what `grade` writes is signed")},
        {"witness", v.witness ? witness(*v.witness) : missing("/witness", stage_reason())},
        {"protections", protections()},
        {"environment", texts(v.environment)},
        {"timings", timings()},
        {"timeline", timeline()},
    };
    out["not_measured"] = texts(m_reasons);  // last: the lines above add to it
    return out;
  }

 private:
  /// Null, with a reason for it unless the judge has given a better one.
  json missing(const std::string& path, std::string_view reason) {
    m_reasons.emplace(m_prefix + path, reason);
    return nullptr;
  }

  json number(double value, const std::string& path, std::string_view reason = "the value is not a finite number") {
    return std::isfinite(value) ? json(value) : missing(path, reason);
  }

  json hash(const std::string& value, const std::string& path) {
    return value.empty() ? missing(path, "no snapshot was taken") : json(text(value));
  }

  std::string stage_reason() const {
    if (m_verdict.outcome == Outcome::pass || m_verdict.outcome == Outcome::slow) {
      return "`" + m_verdict.command + "` does not measure this";
    }
    return "not reached: the ask ended with " + std::string(to_string(m_verdict.outcome));
  }

  json reward() {
    const Reward& r = m_verdict.reward;
    const std::string_view why = r.reason.empty() ? "no reward was given" : std::string_view(r.reason);
    return {{"value", r.value ? json(*r.value) : missing("/reward/value", why)},
            {"final", r.final},
            {"reason", text(r.reason)},
            {"on", text(r.on)}};
  }

  json task() {
    json findings = json::array();
    for (const TaskFinding& finding : m_verdict.task_findings) {
      findings.push_back({{"kind", text(finding.kind)}, {"message", text(finding.message)}});
    }
    return {{"name", text(m_verdict.task.name)},
            {"sha256", hash(m_verdict.task.sha256, "/task/sha256")},
            {"pinned", m_verdict.task_pinned},
            {"contract", text(m_verdict.contract)},
            {"findings", std::move(findings)}};
  }

  json candidate() {
    return {{"name", text(m_verdict.candidate.name)},
            {"sha256", hash(m_verdict.candidate.sha256, "/candidate/sha256")},
            {"output", text(m_verdict.candidate_output)}};
  }

  static json diagnostic(const Diagnostic& d) {
    return {{"file", text(d.file)},
            {"line", d.line > 0 ? json(d.line) : json(nullptr)},
            {"column", d.column > 0 ? json(d.column) : json(nullptr)},
            {"severity", text(d.severity)},
            {"message", text(d.message)},
            {"phase", text(d.phase)}};
  }

  static json kernel(const KernelResources& k) {
    return {{"name", text(k.name)},
            {"architecture", text(k.architecture)},
            {"registers", k.registers},
            {"spill_stores", k.spill_stores},
            {"spill_loads", k.spill_loads},
            {"stack_frame", k.stack_frame},
            {"shared_memory", k.shared_memory}};
  }

  json witness(const Witness& w) {
    json operators = json::array();
    for (const auto& [name, calls] : w.operators) operators.push_back({{"name", text(name)}, {"calls", calls}});
    json kernels = json::array();
    double all = 0;
    double own = 0;
    for (const TracedKernel& one : w.kernels.value_or(std::vector<TracedKernel>())) {
      kernels.push_back({{"name", text(one.name)}, {"calls", one.calls}, {"time", one.microseconds}, {"own", one.own}});
      all += one.microseconds;
      own += one.own ? one.microseconds : 0;
    }
    if (w.kernels && all > 0) return {{"operators", operators}, {"kernels", kernels}, {"own_share", own / all}};
    std::string const why = w.kernels ? "nothing ran on the GPU" : w.untraced;
    return {{"operators", std::move(operators)},
            {"kernels", w.kernels ? kernels : missing("/witness/kernels", why)},
            {"own_share", missing("/witness/own_share", why)}};
  }

  /// A candidate that breaks rules everywhere: the first ones say enough.
  static constexpr std::size_t most_findings = 100;

  static json policy(const PolicyReport& p) {
    json findings = json::array();
    for (const PolicyFinding& f : p.findings) {
      if (findings.size() == most_findings) break;
      findings.push_back({{"rule", text(f.rule)},
                          {"file", f.file.empty() ? json(nullptr) : json(text(f.file))},
                          {"line", f.line > 0 ? json(f.line) : json(nullptr)},
                          {"column", f.column > 0 ? json(f.column) : json(nullptr)},
                          {"symbol", f.symbol.empty() ? json(nullptr) : json(text(f.symbol))},
                          {"message", text(f.message)},
                          {"reached", text(f.reached)},
                          {"source", text(f.source)},
                          {"hint", text(f.hint)}});
    }
    return {
        {"enforced", p.enforced}, {"left_out", p.findings.size() - findings.size()}, {"findings", std::move(findings)}};
  }

  json build(const BuildReport& b) {
    json objects = json::array();
    for (const BuiltObject& object : b.objects) {
      const std::string path = "/build/objects/" + std::to_string(objects.size());
      json diagnostics = json::array();
      for (const Diagnostic& d : object.diagnostics) {
        diagnostics.push_back(diagnostic(d));
      }
      objects.push_back({{"source", text(object.source)},
                         {"tool", text(object.tool)},
                         {"seconds", number(object.seconds, path + "/seconds")},
                         {"cached", object.cached},
                         {"diagnostics", std::move(diagnostics)}});
    }
    json kernels = json::array();
    for (const KernelResources& k : b.kernels) {
      kernels.push_back(kernel(k));
    }
    json flags = json::object();
    for (const auto& [tool, values] : b.flags) {
      flags[text(tool)] = texts(values);
    }
    const auto of_extension = [&](const std::string& value, const char* path) {
      return value.empty() ? missing(path, "no extension was built") : json(text(value));
    };
    return {{"device", text(b.device)},
            {"architecture", text(b.architecture)},
            {"architecture_from", text(b.architecture_from)},
            {"objects", std::move(objects)},
            {"kernels", std::move(kernels)},
            {"flags", std::move(flags)},
            {"extension_sha256", of_extension(b.extension_sha256, "/build/extension_sha256")},
            {"extension_path", of_extension(b.extension_path, "/build/extension_path")},
            {"seconds", number(b.seconds, "/build/seconds")}};
  }

  json element_difference(const std::optional<ElementDifference>& difference, const std::string& path) {
    if (!difference) {
      return nullptr;  // there is none, which is an answer: no reason to give
    }
    const ElementDifference& d = *difference;
    constexpr std::string_view not_finite = "one of the two values is not finite";
    const std::string_view no_relative = std::isfinite(d.absolute) ? "the expected value is 0" : not_finite;
    return {{"output", text(d.output)},
            {"index", d.index},
            {"expected", text(d.expected)},
            {"got", text(d.got)},
            {"absolute", number(d.absolute, path + "/absolute", not_finite)},
            {"relative", number(d.relative, path + "/relative", no_relative)},
            {"trial", d.trial}};
  }

  json precision(const PrecisionReport& p) {
    const auto side = [this](double error, const std::string& name, const char* path) -> json {
      return {{"error", number(error, path)}, {"class", text(name)}};
    };
    return {{"rule", text(p.rule)},
            {"eager", side(p.eager, p.eager_class, "/correctness/precision/eager/error")},
            {"candidate", side(p.candidate, p.candidate_class, "/correctness/precision/candidate/error")},
            {"lower", p.lower}};
  }

  json correctness(const Correctness& c) {
    json tolerances = json::object();
    for (const auto& [dtype, tolerance] : c.tolerances) {
      const std::string path = "/correctness/tolerances/" + text(dtype);
      tolerances[text(dtype)] = {{"rtol", number(tolerance.rtol, path + "/rtol")},
                                 {"atol", number(tolerance.atol, path + "/atol")}};
    }
    return {{"trials", c.trials},
            {"passed", c.passed},
            {"timed_compared", c.timed_compared},
            {"tolerances", std::move(tolerances)},
            {"worst", element_difference(c.worst, "/correctness/worst")},
            {"first_mismatch", element_difference(c.first_mismatch, "/correctness/first_mismatch")},
            {"worst_rms_scaled", number(c.worst_rms_scaled, "/correctness/worst_rms_scaled",
                                        "a reference of nothing but zeros has no RMS")},
            {"mismatch", text(c.mismatch)},
            {"precision", c.precision ? precision(*c.precision) : missing("/correctness/precision", stage_reason())},
            {"seeds", texts(c.seeds)}};
  }

  json interval(const Interval& i, const std::string& path) {
    return {{"estimate", number(i.estimate, path + "/estimate")},
            {"low", number(i.low, path + "/low")},
            {"high", number(i.high, path + "/high")}};
  }

  json arm(const ArmReport& a, const std::string& path) {
    return {{"name", text(a.name)},
            {"time", a.time ? interval(*a.time, path + "/time") : missing(path + "/time", "this arm was not timed")},
            {"calls", a.calls},
            {"null", a.null ? number(*a.null, path + "/null")
                            : missing(path + "/null", "the empty call was not timed in this arm's worker")}};
  }

  json ratio(const RatioReport& r, const std::string& path) {
    return {{"baseline", text(r.baseline)},
            {"ratio", interval(r.ratio, path + "/ratio")},
            {"confidence", number(r.confidence, path + "/confidence")},
            {"between_processes", r.between_processes ? number(*r.between_processes, path + "/between_processes")
                                                      : missing(path + "/between_processes", not_told_apart)}};
  }

  json channels(const ChannelReport& c) {
    return {{"stream", c.stream},
            {"tried", c.tried},
            {"launches", c.launches},
            {"reference", number(c.reference, "/speed/channels/reference")},
            {"candidate", number(c.candidate, "/speed/channels/candidate")}};
  }

  json speed(const Speed& s) {
    json arms = json::array();
    for (const ArmReport& a : s.arms) {
      arms.push_back(arm(a, "/speed/arms/" + std::to_string(arms.size())));
    }
    json ratios = json::array();
    for (const RatioReport& r : s.ratios) {
      ratios.push_back(ratio(r, "/speed/ratios/" + std::to_string(ratios.size())));
    }
    return {{"mode", text(s.mode)},
            {"rounds", s.rounds},
            {"calls_per_round", s.calls_per_round},
            {"arms", std::move(arms)},
            {"ratios", std::move(ratios)},
            {"channels", s.channels ? channels(*s.channels) : missing("/speed/channels", not_told_apart)},
            {"launch_bound", s.launch_bound},
            {"unstable", s.unstable},
            {"disturbed", texts(s.disturbed)},
            {"samples", samples(s)},
            {"eager_factor", number(s.eager_factor, "/speed/eager_factor")}};
  }

  json samples(const Speed& s) {
    json list = json::array();
    for (const ArmSamples& one : s.samples) {
      list.push_back({{"name", text(one.name)},
                      {"null", number(one.null, "/speed/samples")},
                      {"null_tail", number(one.null_tail, "/speed/samples")},
                      {"spans", one.spans},
                      {"tails", one.tails}});
    }
    return list;
  }

  json grade(const Grade& g) {
    json runs = json::array();
    for (const GradeRun& run : g.runs) {
      m_prefix = "/grade/runs/" + std::to_string(runs.size());
      constexpr const char* ended = "this ask ended before";
      runs.push_back({{"seed", text(run.seed)},
                      {"outcome", to_string(run.outcome)},
                      {"message", text(run.message)},
                      {"reward", run.reward ? json(*run.reward) : missing("/reward", ended)},
                      {"correctness", run.correctness ? correctness(*run.correctness) : missing("/correctness", ended)},
                      {"speed", run.speed ? speed(*run.speed) : missing("/speed", ended)}});
    }
    m_prefix.clear();
    json ratios = json::array();
    for (const GradeRatio& one : g.ratios) {
      const std::string path = "/grade/ratios/" + std::to_string(ratios.size());
      ratios.push_back({{"baseline", text(one.baseline)},
                        {"ratio", interval(one.ratio, path + "/ratio")},
                        {"spread", number(one.spread, path + "/spread")}});
    }
    return {{"runs", std::move(runs)}, {"ratios", std::move(ratios)}};
  }

  json protections() const {
    json list = json::array();
    for (const Protection& p : m_verdict.protections) {
      list.push_back({{"name", text(p.name)}, {"in_force", p.in_force}, {"detail", text(p.detail)}});
    }
    return list;
  }

  json timings() {
    json object = json::object();
    for (const auto& [stage, seconds] : m_verdict.timings) {
      object[text(stage)] = number(seconds, "/timings/" + text(stage));
    }
    return object;
  }

  json timeline() const {
    json spans = json::array();
    for (const TimelineSpan& one : m_verdict.timeline) {
      spans.push_back({{"what", text(one.what)},
                       {"lane", text(one.lane)},
                       {"start", one.start - m_verdict.began},
                       {"seconds", one.seconds}});
    }
    return {{"began", m_verdict.began}, {"spans", std::move(spans)}};
  }

  const Verdict& m_verdict;
  std::map<std::string, std::string> m_reasons;
  std::string m_prefix;  ///< of paths: where an object lies in another one
};

}  // namespace

json to_json(const Verdict& verdict) { return Writer(verdict).write(); }

void set_failure(Verdict& verdict, const Error& error) {
  verdict.outcome = error.outcome;
  verdict.fault = error.fault;
  verdict.message = error.message;
  verdict.hints = error.hints;
  verdict.detail = error.detail;
}

}  // namespace cuda_agent
