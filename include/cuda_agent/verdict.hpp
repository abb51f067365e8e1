// The verdict: the one result object (schema "cuda-agent/verdict/1", docs/verdict.md). Every printer renders it and
// nothing is computed after it. Times are microseconds (build and stage times: seconds), sizes bytes, ratios
// baseline time / candidate time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cuda_agent/error.hpp"
#include "cuda_agent/timeline.hpp"

namespace cuda_agent {

/// An estimate with its confidence interval, both in the unit of the estimate.
struct Interval {
  double estimate = 0;
  double low = 0;
  double high = 0;
};

struct Diagnostic {
  std::string file;      ///< relative to the workspace where it lies in it
  int line = 0;          ///< 1-based; 0 = unknown
  int column = 0;        ///< 1-based; 0 = unknown
  std::string severity;  ///< "error", "warning", "note"
  std::string message;
  std::string phase;  ///< "compile", "assemble" (ptxas), "link"
};

struct BuiltObject {
  std::string source;  ///< relative to the workspace; "cuda_extension" for the link
  std::string tool;    ///< "nvcc", "host", "link"
  double seconds = 0;  ///< 0 when cached
  bool cached = false;
  std::vector<Diagnostic> diagnostics;
  double start = 0;  ///< seconds of the steady clock; 0 when cached
};

struct KernelResources {
  std::string name;  ///< demangled
  std::string architecture;
  std::int64_t registers = 0;
  std::int64_t spill_stores = 0;   ///< bytes
  std::int64_t spill_loads = 0;    ///< bytes
  std::int64_t stack_frame = 0;    ///< bytes
  std::int64_t shared_memory = 0;  ///< bytes, static
};

struct BuildReport {
  std::string device;             ///< "cuda" or "cpu"
  std::string architecture;       ///< "sm_90a"; for "cpu" the host's target, e.g. "x86_64"
  std::string architecture_from;  ///< "gpu", "TORCH_CUDA_ARCH_LIST", "--arch", "host"
  std::vector<BuiltObject> objects;
  std::vector<KernelResources> kernels;
  std::map<std::string, std::vector<std::string>> flags;  ///< by tool
  std::string extension_sha256;
  std::string extension_path;  ///< the built shared object
  double seconds = 0;
};

/// Where and how two tensors differ first or most.
struct ElementDifference {
  std::string output;               ///< path inside the returned value, e.g. "output[1].logits"
  std::vector<std::int64_t> index;  ///< index of the element
  std::string expected;             ///< value, printed with full precision
  std::string got;
  double absolute = 0;
  double relative = 0;  ///< absolute / |expected|; infinite when expected is 0
  int trial = 0;        ///< 1-based
};

struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

/// Errors against the task's model in float64: RMS of the errors / RMS of the exact results, largest of all tensors of
/// single precision.
struct PrecisionReport {
  std::string rule;  ///< "same", "any", "tf32"
  double eager = 0;
  double candidate = 0;
  std::string eager_class = {};  ///< "fp32", "tf32 or fp16", "bf16 or less"
  std::string candidate_class = {};
  bool lower = false;  ///< the candidate's class is lower than the rule asks for
};

struct Correctness {
  int trials = 0;
  int passed = 0;
  int timed_compared = 0;                       ///< timed calls whose outputs were compared as well
  std::map<std::string, Tolerance> tolerances;  ///< by dtype
  std::optional<ElementDifference> worst;
  std::optional<ElementDifference> first_mismatch;
  double worst_rms_scaled = 0;     ///< largest |error| / RMS of its reference tensor
  std::string mismatch;            ///< one sentence about the first failure; empty when none
  std::vector<std::string> seeds;  ///< 64-bit, as decimal text (JSON numbers lose bits)
  std::optional<PrecisionReport> precision = std::nullopt;
};

struct ArmReport {
  std::string name;              ///< "eager", "compiled", "candidate"
  std::optional<Interval> time;  ///< microseconds a call, null subtracted
  int calls = 0;                 ///< timed calls
  std::optional<double> null;    ///< microseconds a call, in the reference's worker
};

struct RatioReport {
  std::string baseline;   ///< "eager" or "compiled"
  Interval ratio;         ///< baseline time / candidate time
  double confidence = 0;  ///< e.g. 0.995
  /// Relative half-width that the interval carries since the arms run in two processes; none where they are not told
  /// apart.
  std::optional<double> between_processes = std::nullopt;
};

/// What launching costs in the channels of the two workers (CUDA).
struct ChannelReport {
  int stream = 0;        ///< of the reference's worker, the nearest to the candidate's
  int tried = 0;         ///< streams
  int launches = 0;      ///< kernels that do nothing in the two figures below
  double reference = 0;  ///< microseconds
  double candidate = 0;  ///< microseconds
};

/// What the clock said, round by round, and what was taken off: all other figures of an arm follow from these.
struct ArmSamples {
  std::string name;
  double null = 0;            ///< microseconds of an empty call, K calls
  double null_tail = 0;       ///< microseconds from its answer until its results were stored; 0 where not told apart
  std::vector<double> spans;  ///< microseconds of K calls, null included
  std::vector<double> tails;  ///< microseconds from the answer until the last result was stored
};

struct Speed {
  std::string mode;  ///< "gated" (CUDA), "end_to_end", "answer" (CPU: from call to answer)
  int rounds = 0;
  int calls_per_round = 0;  ///< K
  std::vector<ArmReport> arms;
  std::vector<RatioReport> ratios;
  std::optional<ChannelReport> channels;  ///< none where launches are not told apart (CPU)
  bool launch_bound = false;
  bool unstable = false;
  std::vector<std::string> disturbed;  ///< one sentence a disturbance
  std::vector<ArmSamples> samples;
  /// By what eager's ratio was multiplied since eager was faster with the candidate gone (≤ 1).
  double eager_factor = 1;
};

struct Reward {
  std::optional<int> value;  ///< -1, 1, 2, 3; none when there is none to give
  bool final = false;        ///< only `grade` gives a final one
  std::string reason;
  std::string on = "interval";
};

struct Protection {
  std::string name;
  bool in_force = false;
  std::string detail;  ///< what exactly, or why not
};

struct Subject {
  std::string name;
  std::string sha256;
};

struct TaskFinding {
  std::string kind;  ///< "degenerate", "nondeterministic", "slow_inputs", …
  std::string message;
};

/// What was seen of the candidate's calls, from within its own process: evidence of what it did, not of what it did
/// not.
/// What ran on the GPU while ModelNew was called once, in a process of its own that was not timed.
struct TracedKernel {
  std::string name;  ///< demangled, or "Memcpy ..." and "Memset ..."
  std::int64_t calls = 0;
  double microseconds = 0;  ///< of all calls
  bool own = false;         ///< built from kernels/
};

struct Witness {
  std::map<std::string, std::int64_t> operators;  ///< of torch, called by ModelNew.forward itself, with their calls
  std::optional<std::vector<TracedKernel>> kernels = {};  ///< none: `untraced` says why
  std::string untraced = "not traced";
};

/// One place where the candidate breaks a rule of the policy (docs/policy.md, docs/policy-objects.md).
struct PolicyFinding {
  std::string rule;          ///< stable name; `cuda-agent policy explain RULE` says more
  std::string file = {};     ///< relative to the workspace; empty: the extension as a whole
  int line = 0;              ///< 1-based; 0 = the whole file
  int column = 0;            ///< 1-based; 0 = the whole line
  std::string symbol = {};   ///< of the built extension, demangled
  std::string message;       ///< one sentence
  std::string reached = {};  ///< how it comes to run: "forward → _helper → torch.relu"
  std::string source = {};   ///< the line itself, shortened
  std::string hint = {};     ///< what to do instead
};

struct PolicyReport {
  bool enforced = true;  ///< false: --policy none
  std::vector<PolicyFinding> findings = {};
};

/// One of the asks of a grade: fresh workers, fresh seeds.
struct GradeRun {
  std::string seed;  ///< of the ask, as decimal text: what --seed replays
  Outcome outcome = Outcome::pass;
  std::string message;
  std::optional<int> reward;
  std::optional<Correctness> correctness;
  std::optional<Speed> speed;
};

/// What all asks of a grade say of one baseline together.
struct GradeRatio {
  std::string baseline;
  Interval ratio;     ///< median of the estimates, lowest low end, highest high end
  double spread = 0;  ///< largest estimate / smallest estimate − 1
};

struct Grade {
  std::vector<GradeRun> runs;
  std::vector<GradeRatio> ratios;
};

struct Verdict {
  std::string command;  ///< "compile", "verify", "profile", "run", "grade"
  std::string time;     ///< UTC, ISO 8601
  Outcome outcome = Outcome::pass;
  Fault fault = Fault::none;
  std::string message;
  std::vector<std::string> hints;
  std::string detail;
  Reward reward;
  std::string workspace;
  Subject task;
  bool task_pinned = false;
  std::string contract;
  std::vector<TaskFinding> task_findings;
  Subject candidate;
  std::optional<PolicyReport> policy;  ///< none: not reached
  std::optional<BuildReport> build;
  std::optional<Correctness> correctness;
  std::optional<Speed> speed;
  std::optional<Grade> grade;
  std::string seed;                                 ///< of the ask, as decimal text; empty: none was drawn
  std::map<std::string, std::string> not_measured;  ///< JSON path → reason
  std::optional<Witness> witness;
  std::vector<Protection> protections;
  std::map<std::string, std::string> environment;
  std::map<std::string, double> timings;  ///< seconds by stage
  double began = 0;                       ///< seconds of the steady clock
  Timeline timeline;
  std::string candidate_output;  ///< what it printed: head and tail, escaped
};

/// The verdict as JSON. Every key of docs/verdict.schema.json is present.
nlohmann::json to_json(const Verdict& verdict);

/// Writes outcome, fault, message, hints and detail of an error into the verdict.
void set_failure(Verdict& verdict, const Error& error);

}  // namespace cuda_agent
