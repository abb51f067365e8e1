#include "judge/judge.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include "build/object_store.hpp"
#include "build/worker_module.hpp"
#include "exec/root_access.hpp"
#include "exec/sandbox.hpp"
#include "judge/candidate_seal.hpp"
#include "judge/closing.hpp"
#include "judge/device_state.hpp"
#include "judge/exchange.hpp"
#include "judge/kernel_trace.hpp"
#include "judge/lint.hpp"
#include "judge/machine.hpp"
#include "judge/memory_plan.hpp"
#include "judge/policy_stage.hpp"
#include "judge/probe.hpp"
#include "judge/processors.hpp"
#include "judge/profile.hpp"
#include "judge/stopwatch.hpp"
#include "judge/subject.hpp"
#include "judge/supply.hpp"
#include "judge/verify.hpp"
#include "judge/worker.hpp"
#include "judge/worker_setups.hpp"
#include "util/file_lock.hpp"
#include "util/files.hpp"
#include "util/interrupt.hpp"
#include "util/random.hpp"
#include "util/text.hpp"
#include "util/time.hpp"

namespace cuda_agent::judge {
namespace fs = std::filesystem;
namespace {

std::string_view to_string(Stage stage) {
  switch (stage) {
    case Stage::compile:
      return "compile";
    case Stage::verify:
      return "verify";
    case Stage::profile:
      return "profile";
    case Stage::run:
      return "run";
  }
  return "";
}

/// One ask about one candidate: the workers live as long as it does.
class Judgement {
 public:
  Judgement(const workspace::Workspace& workspace, const workspace::Snapshot& snapshot, const Options& options,
            const Installation& installation, const build::Cache& cache, const fs::path& scratch,
            util::Progress& progress, util::Deadline deadline, Supply* supply)
      : m_fresh(scratch),
        m_supply(supply != nullptr ? *supply : m_fresh),
        m_snapshot(snapshot),
        m_options(options),
        m_installation(installation),
        m_cache(cache),
        m_scratch(scratch),
        m_progress(progress),
        m_deadline(deadline),
        m_seed(options.seed ? *options.seed : util::random_u64()) {
    m_verdict.command = to_string(options.stage);
    m_verdict.time = util::utc_now();
    m_verdict.workspace = workspace.root.string();
    m_verdict.task = {workspace.root.filename().string(), snapshot.task_sha256};
    m_verdict.candidate = {"ModelNew", snapshot.candidate_sha256};
    m_verdict.task_pinned = options.task_pinned;
    if (options.stage != Stage::compile) m_verdict.seed = std::to_string(m_seed);
    m_verdict.contract = options.contract == Contract::cuda_agent ? "cuda-agent" : "kernelbench";
  }

  Verdict judge() {
    auto done = steps();
    if (!done) done = fail(blamed(done.error()));
    if (!done) {
      // A Ctrl-C reaches a child that has not left the process group yet: what such a one died of is no verdict.
      set_failure(m_verdict, util::interrupted() ? util::interrupted_error() : done.error());
    } else {
      note_pass(m_verdict);
    }
    // Cut where it was captured: to cut it again would leave a wrong count of what was left out.
    constexpr std::size_t whole = std::size_t{1} << 20;
    if (m_candidate && m_admitted) m_verdict.candidate_output = util::escape_untrusted(m_candidate->printed(), whole);
    close_verdict(m_verdict, m_options);
    end_workers();
    return std::move(m_verdict);
  }

 private:
  Result<void> steps() {
    if (auto done = prepare(); !done) return done;
    bool const build_only = m_options.stage == Stage::compile || m_options.front_only;
    if (!build_only) {
      if (auto done = start_workers(); !done) return done;
    }
    if (auto done = obtain_extension(); !done || build_only) return done;
    if (auto done = await_workers(); !done) return done;
    if (auto done = take_device(); !done) return done;
    if (auto done = open_device(); !done) return done;
    if (auto done = load_task(); !done) return done;
    if (timed()) {
      if (auto done = measure_empty(); !done) return done;
    }
    if (auto done = load_candidate(); !done) return done;
    if (m_options.stage != Stage::profile) {
      if (auto done = check(); !done) return done;
      if (auto done = ask_witness(); !done) return done;
    }
    if (timed()) {
      if (auto done = time_arms(); !done) return done;
    }
    return timed() ? require_speedup() : look_last();
  }

  /// A GPU is shared: what one process does to it can show in another's error.
  Error blamed(Error error) {
    bool const of_memory = error.message.find("out of memory") != std::string::npos ||
                           error.message.find("too little free memory") != std::string::npos;
    bool const not_its_own = error.fault == Fault::task || error.fault == Fault::environment;
    if (m_candidate_loaded && of_memory && not_its_own) return blame_memory(std::move(error));
    if (m_candidate_loaded && error.outcome == Outcome::crash) {
      m_candidate->end();
      if (auto const works = m_machine.backend->still_works(); !works) return works.error();
    }
    return error;
  }

  Error blame_memory(Error error) {
    auto const before = m_machine.backend->free_memory();
    m_candidate->end();
    auto const after = m_machine.backend->free_memory();
    if (!before || !after || *after < *before) return error;
    // What the judge lent to it is not its own: that is counted with the supervisor's.
    std::uint64_t const held = *after - *before;
    if (held <= m_candidate_memory + allowed_beside_the_model) return error;
    return {Outcome::crash,
            fmt::format("ModelNew holds {} of GPU memory, about {} are what its task needs; then: {}", in_words(held),
                        in_words(m_candidate_memory), error.message),
            {"free what is no longer used; memory that is kept between calls stays small"}};
  }

  Worker& reference() { return *m_reference->worker; }
  bool timed() const { return m_options.stage == Stage::run || m_options.stage == Stage::profile; }

  // --- the machine -------------------------------------------------------------------------------------------------

  Result<void> prepare() {
    StageWatch const watch(m_verdict, "prepare");
    m_progress.step("looking for Python, torch and compilers");
    auto machine = find_machine(m_options, m_supply, m_deadline);
    if (!machine) return fail(machine.error());
    m_machine = std::move(*machine);
    m_verdict.environment.merge(facts_of(m_machine, m_options.stage));
    if (auto const missing = m_verdict.environment.find("device.nvml"); missing != m_verdict.environment.end()) {
      m_progress.note(fmt::format("NVML is {}", missing->second));
    }
    m_untraced = why_untraced();
    if (auto reached = within_reach(); !reached) return reached;
    for (auto& protection : exec::protections(exec::probe_sandbox())) {
      if (auto allowed = required(protection); !allowed) return allowed;
      m_verdict.protections.push_back(protection);
    }
    return {};
  }

  /// Workers and compilers have no capabilities. What root reaches only by those is out of their reach, and that shall
  /// not look like the candidate's fault.
  Result<void> within_reach() const {
    if (::geteuid() != 0) return {};
    build::Interpreter const& python = m_machine.interpreter;
    for (fs::path const& place : {m_scratch, m_cache.root, python.prefix, python.base_prefix, python.torch_dir}) {
      fs::path const closed = exec::closed_to_root(place);
      if (closed.empty()) continue;
      return fail(
          Outcome::environment_error,
          fmt::format("{} is closed to a sandbox that root starts: it belongs to another user, and the processes in "
                      "the sandbox have no capabilities; needed for {}",
                      closed.string(), place.string()),
          {"judge as the user to whom it belongs",
           fmt::format("or let others enter that folder: chmod o+x {}", closed.string())});
    }
    return {};
  }

  std::string why_untraced() const {
    if (m_machine.target == build::Target::cpu) return "only a GPU's kernels are traced";
    if (!timed()) return "kernels are traced when a candidate is timed: run, profile, grade";
    return m_options.trace_kernels ? "" : "--trace-kernels yes traces them";
  }

  /// With --require-sandbox strict a protection that is not in force ends the ask before the candidate is loaded.
  Result<void> required(const Protection& protection) const {
    bool const runs_candidate = m_options.stage != Stage::compile;
    if (protection.in_force || !m_options.strict_sandbox || !runs_candidate) return {};
    return fail(Outcome::environment_error,
                fmt::format("--require-sandbox strict: {} is not in force: {}", protection.name, protection.detail),
                {"mend that, or accept a weaker sandbox with --require-sandbox any"});
  }

  Result<void> start_workers() {
    StageWatch const watch(m_verdict, "workers");  // their module included, where it must be built first
    auto module = build::worker_module(m_installation.worker_sources, m_installation.worker_modules,
                                       m_machine.toolchain, m_machine.interpreter, m_cache, m_progress, m_deadline);
    if (!module) return fail(module.error());
    m_progress.step("starting the workers");
    auto const kept = make_torch_cache(m_cache);
    if (!kept) return fail(kept.error());
    auto setups = worker_setups(m_machine, m_options, *module, *kept);
    setups.reference.ask = setups.candidate.ask = m_deadline;
    if (auto obtained = obtain_reference(setups.reference); !obtained) return obtained;
    auto candidate = m_supply.worker(setups.candidate);
    if (!candidate) return fail(candidate.error());
    m_candidate = std::move(*candidate);
    m_candidate->serve(m_deadline);
    m_setup_of_candidate = std::move(setups.candidate);
    m_setup_of_candidate.folder = m_candidate->folder();
    return {};
  }

  /// One that has the task already, or a worker that will get it. Seeds are replayed from the constructors on.
  Result<void> obtain_reference(const WorkerSetup& setup) {
    auto key = reference_key(setup);
    if (!m_options.seed) m_reference = m_supply.reference(key);
    m_warm = m_reference != nullptr;
    if (!m_warm) {
      auto worker = m_supply.worker(setup);
      if (!worker) return fail(worker.error());
      m_reference = std::make_unique<LoadedReference>();
      m_reference->key = std::move(key);
      m_reference->task = m_snapshot.task_sha256;
      m_reference->worker = std::move(*worker);
      m_reference->seed = m_options.constructor_seed.value_or(m_seed);
      if (auto placed = place("model.py", m_reference->worker->folder()); !placed) return placed;
    }
    m_reference->worker->serve(m_deadline);
    if (m_reference->seed != m_seed) m_verdict.seed = fmt::format("{}/{}", m_seed, m_reference->seed);
    return {};
  }

  /// Whatever a reference worker depends on.
  std::string reference_key(const WorkerSetup& setup) const {
    return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", m_snapshot.task_sha256, m_verdict.contract, m_options.compile_mode,
                       setup.compiler, m_machine.backend->lock_name(), key_of(setup));
  }

  /// Copies a file of the snapshot to a folder that a worker sees, by rename, so that it is there whole.
  Result<void> place(const std::string& name, const fs::path& folder) {
    constexpr std::size_t largest = std::size_t{64} << 20;
    auto const text = util::read_file(m_snapshot.root / name, largest);
    if (!text) return fail(text.error());
    return util::write_file(folder / name, *text);
  }

  // --- the policy --------------------------------------------------------------------------------------------------

  /// The rules on model_new.py are asked while the compilers run. What does not compile cannot be checked whole: that
  /// decides first, and the rules that are broken stand beside it.
  Result<void> obtain_extension() {
    if (m_options.front_only) return obtain_front();
    Timeline beside;
    auto rules = std::async(std::launch::async, [&] {
      Stopwatch const watch(beside, "rules on model_new.py", "rules");
      return ask_rules();
    });
    auto built = build_candidate();
    auto found = rules.get();
    m_verdict.timeline.insert(m_verdict.timeline.end(), beside.begin(), beside.end());
    if (!found) return fail(found.error());
    if (!m_options.policy) return built;
    if (built) {
      auto in_objects = check_built(m_built);
      if (!in_objects) return fail(in_objects.error());
      found->insert(found->end(), std::make_move_iterator(in_objects->begin()),
                    std::make_move_iterator(in_objects->end()));
    }
    m_verdict.policy.emplace(PolicyReport{true, std::move(*found)});
    auto const& findings = m_verdict.policy->findings;
    return built && !findings.empty() ? fail(policy_violation(findings)) : std::move(built);
  }

  /// The session asks for the rules, meanwhile as a rule, and answers from what it remembers.
  Result<void> obtain_front() {
    auto built = build_candidate();
    if (built || !m_options.policy) return built;
    auto found = ask_rules();
    if (!found) return fail(found.error());
    m_verdict.policy.emplace(PolicyReport{true, std::move(*found)});
    return built;
  }

  Result<std::vector<PolicyFinding>> ask_rules() const {
    if (!m_options.policy) return std::vector<PolicyFinding>();
    return check_model_new(m_snapshot.root, m_machine.interpreter, m_installation.policy, m_deadline, m_supply.rules());
  }

  /// Which operators ModelNew has called so far, seen from within its process; those that compute break a rule.
  Result<void> ask_witness() {
    auto const reply = m_candidate->request({{"op", "witness"}}, {}, m_deadline, "asking what ModelNew has called");
    if (!reply) return fail(reply.error());
    auto seen = read_witness(*reply);
    if (!seen && m_options.policy) return fail(seen.error());
    if (!seen) {
      m_verdict.not_measured["/witness"] = seen.error().message;
      return {};
    }
    m_verdict.witness = std::move(*seen);
    m_verdict.witness->kernels = m_traced;
    if (!m_untraced.empty()) m_verdict.witness->untraced = m_untraced;
    if (!m_options.policy) return {};
    auto found = check_witness(*m_verdict.witness, m_installation.policy);
    if (!found) return fail(found.error());
    if (found->empty()) return {};
    m_verdict.policy->findings = std::move(*found);
    return fail(policy_violation(m_verdict.policy->findings));
  }

  // --- the build ---------------------------------------------------------------------------------------------------

  Result<void> build_candidate() {
    StageWatch const watch(m_verdict, "build");
    build::ExtensionRequest request;
    request.snapshot = m_snapshot.root;
    request.support = m_installation.support;
    request.output = m_scratch / "built";
    request.target = m_machine.target;
    request.architecture = m_options.architecture;
    request.object_timeout = m_options.compile_timeout;
    request.gpu_architecture = m_machine.gpu_architecture;
    m_built =
        build::build_extension(request, m_machine.toolchain, m_machine.interpreter, m_cache, m_progress, m_deadline);
    m_built.report.extension_path = m_built.error ? "" : m_built.extension.string();
    m_verdict.build = m_built.report;
    for (BuiltObject const& one : m_built.report.objects) {
      if (!one.cached) m_verdict.timeline.push_back({one.source, "build", one.start, one.seconds});
    }
    if (m_built.error) return fail(*m_built.error);
    return {};
  }

  // --- the task ----------------------------------------------------------------------------------------------------

  Result<void> load_task() {
    StageWatch const watch(m_verdict, "task");
    m_exchange.emplace(*m_machine.backend, reference(), m_deadline);
    if (m_warm) {
      m_exchange->expect_results(m_reference->result_bytes);
    } else if (auto loaded = load_anew(); !loaded) {
      return loaded;
    }
    m_reference_loaded = true;
    m_verdict.task_findings = m_reference->facts.findings;
    return look_at_memory();
  }

  Result<void> load_anew() {
    m_progress.step("loading the task");
    nlohmann::json const message = {{"op", "load"},
                                    {"path", (reference().folder_inside() / "model.py").string()},
                                    {"seed", util::derived_seed("constructor", m_reference->seed)},
                                    {"eval", m_options.contract == Contract::cuda_agent}};
    auto loaded = reference().request(message, {}, m_deadline, "loading model.py");
    if (!loaded) return fail(loaded.error());
    m_reference->description = std::move(*loaded);
    auto lint = lint_task(*m_exchange, m_seed, m_deadline);
    if (!lint) return fail(lint.error());
    m_reference->facts = std::move(*lint);
    m_reference->input_bytes = m_exchange->input_bytes();
    m_reference->result_bytes = m_exchange->result_bytes();
    if (!m_machine.backend->free_memory()) return {};
    auto const reply = reference().request({{"op", "memory"}}, {}, m_deadline, "asking for its memory");
    if (!reply) return fail(reply.error());
    m_reference->model_bytes = reply->value("most", std::uint64_t{0});
    return {};
  }

  /// Whether the candidate will fit beside what is there already.
  Result<void> look_at_memory() {
    auto const free = m_machine.backend->free_memory();
    if (!free) return {};
    // What the plan takes for taken already is not yet, where the reference's worker has had its task before.
    std::uint64_t const lent = m_warm ? 3 * m_reference->input_bytes + 2 * m_reference->result_bytes : 0;
    MemoryFacts const facts{.inputs = m_reference->input_bytes,
                            .results = m_reference->result_bytes,
                            .model = m_reference->model_bytes,
                            .free = *free - std::min(*free, lent),
                            .baselines = m_options.baseline == Baseline::eager ? 1 : 2,
                            .timed = timed()};
    MemoryPlan const plan = plan_memory(facts);
    m_candidate_memory = facts.model + facts.results;
    m_probe_fits = plan.probe_fits;
    auto const whole = plan.whole();
    m_verdict.environment["memory.planned"] = std::to_string(whole);
    m_verdict.environment["memory.free"] = std::to_string(*free);
    constexpr std::uint64_t worth_a_line = 4'000'000'000;
    if (whole > worth_a_line) {
      m_progress.note(fmt::format("GPU memory: {} in all ({} already taken), {} free", in_words(whole),
                                  in_words(plan.taken), in_words(*free)));
    }
    return check_memory(facts);
  }

  void note_worker_facts(const nlohmann::json& facts) {
    auto& environment = m_verdict.environment;
    if (facts.contains("threads")) environment["threads"] = facts["threads"].dump();
    if (!facts.contains("precision") || !facts["precision"].is_object()) return;
    for (auto const& [name, value] : facts["precision"].items()) {
      if (value.is_string()) environment["precision." + name] = value.get<std::string>();
    }
  }

  /// A standby was ready before there was an ask.
  void note_start(const Worker& worker) {
    auto const& [start, ready] = worker.coming_up();
    auto const* const who = worker.role() == Role::reference ? "reference worker" : "candidate worker";
    if (ready > m_began) {
      double const from = std::max(start, m_began);
      m_verdict.timeline.push_back({who, "workers", from, ready - from});
    }
  }

  Result<void> await_workers() {
    StageWatch const watch(m_verdict, "workers");
    auto const facts = reference().ready(m_deadline);
    if (!facts) return fail(facts.error());
    note_worker_facts(*facts);
    note_start(reference());
    if (timed()) m_supply.settle(m_deadline);
    if (m_machine.target == build::Target::cpu) {
      if (timed()) m_processors = ProcessorClaim::take(facts->value("threads", 0));
      if (timed()) m_verdict.environment["processors"] = m_processors ? m_processors->in_words() : "any";
      confine(reference());
      return {};
    }
    // On a GPU whoever waits for the other's lock must not wait for an import.
    if (auto ready = await_candidate(); !ready || !timed() || !m_options.trace_kernels) return ready;
    // Now, and not before: three that import torch at the same time are slower than two.
    auto traced = Worker::start(m_setup_of_candidate);
    if (!traced) return fail(traced.error());
    m_trace = std::make_unique<KernelTrace>(std::move(*traced));
    return {};
  }

  void confine(const Worker& worker) {
    if (m_processors) {
      m_processors->confine(worker.pid());
    } else {
      ProcessorClaim::let_go(worker.pid());  // the ask before may have confined it
    }
  }

  /// What was lent is taken back from a reference worker that another ask may have. All others end, at the same time:
  /// where each holds a GPU the driver needs tenths of a second to take it apart.
  void end_workers() {
    m_trace.reset();
    // Without a layer a candidate may have done more than pass or fail.
    bool const whole = m_reference_loaded && m_options.without == Layer::none &&
                       (m_verdict.fault == Fault::none || m_verdict.fault == Fault::candidate);
    bool const kept = whole && !m_options.seed && m_exchange && m_exchange->release_reference();
    m_exchange.reset();
    if (kept) {
      m_candidate.reset();
      m_supply.keep(std::move(m_reference));
      return;
    }
    auto const other = std::async(std::launch::async, [this] { m_reference.reset(); });
    m_candidate.reset();
    other.wait();
  }

  Result<void> await_candidate() {
    if (m_candidate_ready) return {};
    auto const facts = m_candidate->ready(m_deadline);
    if (!facts) return fail(facts.error());
    m_candidate_ready = true;
    if (m_machine.target == build::Target::cpu) confine(*m_candidate);
    note_start(*m_candidate);
    return {};
  }

  Result<void> admit_candidate() {
    if (m_admitted) return {};
    if (auto ready = await_candidate(); !ready) return ready;
    m_exchange->admit(*m_candidate);
    m_admitted = true;
    return {};
  }

  /// The contexts of the supervisor and of both workers, at the same time: each takes half a second.
  Result<void> open_device() {
    if (m_machine.target == build::Target::cpu) return {};
    StageWatch const watch(m_verdict, "device");
    constexpr const char* starting = "starting CUDA";
    nlohmann::json const message = {{"op", "device"}};
    std::vector<Worker*> workers;
    for (Worker* const worker : {&reference(), m_candidate.get()}) {
      if (!worker->device_started()) workers.push_back(worker);
    }
    for (Worker* const worker : workers) {
      worker->resume();
      if (auto sent = worker->send(message.dump(), m_deadline); !sent) {
        return fail(unable_to_start(worker->explained(sent.error(), starting)));
      }
    }
    if (auto opened = m_machine.backend->open(); !opened) return opened;
    for (Worker* const worker : workers) {
      auto const reply = worker->receive(m_deadline);
      worker->stop();
      if (!reply) return fail(unable_to_start(worker->explained(reply.error(), starting)));
      if (auto const checked = worker->checked_reply(*reply, starting); !checked) {
        return fail(unable_to_start(checked.error()));
      }
      worker->note_device_started();
    }
    return {};
  }

  /// No model has been loaded yet: whatever failed is neither the candidate's fault nor the task's.
  static Error unable_to_start(Error error) {
    if (error.outcome != Outcome::interrupted) error.outcome = Outcome::environment_error;
    error.fault = Fault::environment;
    error.hints = {"`nvidia-smi` shows the GPU's state, `cuda-agent doctor` what this machine lacks"};
    return error;
  }

  /// One process at a time works on a GPU, whoever's it is: also a check would disturb another's clock. The workers'
  /// start, which takes longest, is behind us by then.
  Result<void> take_device() {
    std::string const name = m_machine.backend->lock_name();
    if (name.empty()) return {};
    StageWatch const watch(m_verdict, "device_wait");
    auto lock = util::FileLock::acquire(
        fs::path("/tmp") / fmt::format("cuda-agent-{}.lock", name),
        fmt::format("cuda-agent {}", to_string(m_options.stage)), m_deadline,
        [&](const std::string& holder) { m_progress.note(fmt::format("waiting for the GPU, held by {}", holder)); });
    if (!lock) return fail(lock.error());
    m_device_lock = std::move(*lock);
    return {};
  }

  /// Before the candidate's worker hears of its candidate: what it will never need is taken from it.
  Result<void> seal_candidate() {
    if (m_options.without == Layer::seal) {
      m_verdict.protections.push_back({"system-call filter", false, "--without seal"});
      return without_filter();
    }
    bool const gpu = m_machine.target == build::Target::cuda;
    if (gpu) {  // what the gate needs of the device is opened before it can no longer be
      if (auto lent = m_exchange->prepare_candidate(); !lent) return lent;
    }
    auto const sealed = seal_processes(*m_candidate, gpu, m_deadline);
    if (!sealed) return fail(sealed.error());
    m_threads = sealed->threads;
    for (Protection const& one : sealed->protections) {
      m_verdict.protections.push_back(one);
      if (auto allowed = required(one); !allowed) return allowed;
      if (one.name == "system-call filter" && !one.in_force) {
        if (auto allowed = without_filter(); !allowed) return allowed;
      }
    }
    return {};
  }

  /// What was said before the filter was tried may rest on it.
  Result<void> without_filter() {
    for (std::string const& name : exec::resting_on_filter(exec::probe_sandbox())) {
      for (Protection& one : m_verdict.protections) {
        if (one.name != name || !one.in_force) continue;
        one = {name, false, "rests on the system-call filter, which is not in force"};
        if (auto allowed = required(one); !allowed) return allowed;
      }
    }
    return {};
  }

  /// Once it has run a few times: whatever starts threads for good has done so.
  Result<void> seal_threads_of_candidate() {
    if (m_machine.target == build::Target::cpu || m_options.without == Layer::seal) return {};
    auto sealed = seal_threads(*m_candidate, m_threads, m_deadline);
    if (!sealed) return fail(sealed.error());
    m_verdict.protections.push_back(std::move(*sealed));
    return {};
  }

  Result<void> measure_empty() {
    StageWatch const watch(m_verdict, "overheads");
    m_progress.step("measuring the overhead of a call");
    if (auto admitted = admit_candidate(); !admitted) return admitted;
    auto const& facts = m_reference->facts;
    auto overheads = measure_overheads(*m_exchange, facts.output, facts.eager_microseconds, m_seed + 1, m_deadline);
    if (!overheads) return fail(overheads.error());
    m_overheads = std::move(*overheads);
    return {};
  }

  // --- the candidate -----------------------------------------------------------------------------------------------

  Result<void> load_candidate() {
    StageWatch const watch(m_verdict, "load");
    m_progress.step("loading the candidate");
    if (auto admitted = admit_candidate(); !admitted) return admitted;
    if (m_options.without == Layer::fresh_inputs) m_exchange->repeat_inputs(m_seed);
    if (m_options.without == Layer::stopping) m_candidate->let_run();
    if (auto sealed = seal_candidate(); !sealed) return sealed;
    if (auto placed = place("model_new.py", m_candidate->folder()); !placed) return placed;
    m_candidate_loaded = true;
    if (auto placed = build::copy_into_place(m_built.extension, m_candidate->folder() / "cuda_extension.so"); !placed) {
      return placed;
    }
    auto subject = subject_of(m_reference->description, m_candidate->folder_inside().string(), m_reference->seed,
                              m_options.contract);
    if (!subject) return fail(subject.error());
    m_subject = std::move(*subject);
    auto const taken = construct(*m_exchange, *m_candidate, m_subject, call_limits());
    if (!taken) return fail(taken.error());
    if (m_options.gpu_memory == 0) return {};
    m_exchange->limit_candidate_memory(m_options.gpu_memory, *taken);
    m_verdict.protections.push_back({"GPU memory", true,
                                     fmt::format("no more than {} between the candidate's calls, else its processes "
                                                 "are ended",
                                                 in_words(m_options.gpu_memory))});
    return {};
  }

  /// Of one call of the candidate, its import among them.
  util::Deadline limit() const {
    return util::Deadline::after(std::chrono::duration<double>(m_options.call_timeout)).earlier(m_deadline);
  }

  // --- its kernels -------------------------------------------------------------------------------------------------

  /// What goes wrong with the traced copy is no reason to accuse: a tracer changes what a process can do.
  Result<void> begin_trace() {
    if (m_trace == nullptr) return {};
    StageWatch const watch(m_verdict, "trace");
    if (!m_probe_fits) return give_up_trace({Outcome::environment_error, "it does not fit into the GPU's memory"});
    auto const begun = m_trace->begin(*m_exchange, m_subject, limit());
    return begun ? Result<void>() : give_up_trace(begun.error());
  }

  Result<void> finish_trace() {
    if (m_trace == nullptr) return {};
    StageWatch const watch(m_verdict, "trace");
    auto traced = m_trace->finish(m_verdict.build ? m_verdict.build->kernels : std::vector<KernelResources>(), limit());
    if (!traced) return give_up_trace(traced.error());
    m_trace.reset();
    m_traced = std::move(*traced);
    if (m_verdict.witness) m_verdict.witness->kernels = m_traced;
    if (!m_options.policy) return {};
    auto found = check_trace(*m_traced, m_installation.policy);
    if (!found) return fail(found.error());
    if (found->empty()) return {};
    m_verdict.policy->findings = std::move(*found);
    return fail(policy_violation(m_verdict.policy->findings));
  }

  Result<void> give_up_trace(const Error& error) {
    m_trace.reset();
    if (error.outcome == Outcome::interrupted || m_deadline.expired()) return fail(error);
    m_untraced = error.message;
    if (m_verdict.witness) m_verdict.witness->untraced = m_untraced;
    return {};
  }

  CallLimits call_limits() const { return {m_deadline, m_options.call_timeout}; }
  ToleranceOverride tolerance() const {
    return {m_options.rtol, m_options.atol, m_options.without == Layer::comparison};
  }

  Result<void> check() {
    StageWatch const watch(m_verdict, "verify");
    m_verdict.correctness.emplace();
    VerifyOptions options{.trials = m_options.trials,
                          .keep_going = m_options.keep_going,
                          .tolerance = tolerance(),
                          .limits = call_limits()};
    return verify(*m_exchange, options, m_seed, *m_verdict.correctness, m_progress);
  }

  Result<void> time_arms() {
    StageWatch const watch(m_verdict, "profile");
    if (!m_verdict.correctness) {
      m_verdict.correctness.emplace();
      m_verdict.correctness->seeds.push_back(std::to_string(m_seed));
    }
    ProfileOptions options{.baselines = {},
                           .rule = {},
                           .tolerance = tolerance(),
                           .limits = call_limits(),
                           .when_compiled =
                               [this] {
                                 m_reference->compiled = m_options.baseline != Baseline::eager;
                                 return finish_trace();
                               },
                           .when_warm = [this] { return seal_threads_of_candidate(); },
                           .when_timed = [this] { return look_last(); }};
    if (m_machine.target == build::Target::cpu) {
      // Between processors that do other things as well, one round says less than on a GPU: more of them, if need be.
      // Who asks again and again wants to know soon; a grade is patient.
      options.rule.looks = {9, 12, 16, 24, 32, 48, 96};
      options.rule.fewest = 9;
      options.rule.budget = options.rule.patience = 0.4;
    }
    options.rule.patience = m_options.patience.value_or(options.rule.patience);
    options.rule.budget = std::min(options.rule.budget, options.rule.patience);
    if (m_options.baseline != Baseline::compiled) options.baselines.push_back(Arm::eager);
    if (m_options.baseline != Baseline::eager) {
      options.baselines.push_back(Arm::compiled);
      auto made = reference().request({{"op", "compile"}, {"mode", m_options.compile_mode}}, {}, m_deadline,
                                      "preparing torch.compile");
      if (!made) return fail(made.error());
    }
    if (auto begun = begin_trace(); !begun) return begun;
    auto result = profile(*m_exchange, reference(), *m_candidate, m_overheads, options, m_seed + 2,
                          *m_verdict.correctness, m_progress);
    if (!result) return fail(result.error());
    m_verdict.speed = std::move(result->speed);
    m_verdict.timeline.insert(m_verdict.timeline.end(), result->timeline.begin(), result->timeline.end());
    for (auto const& [key, value] : m_machine.backend->facts()) m_verdict.environment[key] = value;
    for (auto& one : disturbances(m_verdict.environment)) m_verdict.speed->disturbed.push_back(std::move(one));
    for (auto& finding : result->findings) m_verdict.task_findings.push_back(std::move(finding));
    for (auto& [path, reason] : result->not_measured) m_verdict.not_measured[path] = reason;
    if (m_options.baseline == Baseline::eager) {
      m_verdict.not_measured["/speed/compiled"] = "--baseline eager leaves it out";
    }
    if (m_options.baseline == Baseline::compiled) {
      m_verdict.not_measured["/speed/eager"] = "--baseline compiled leaves it out of the ratios";
    }
    return {};
  }

  Result<void> look_last() {
    if (auto done = probe_candidate(); !done) return done;
    return ask_witness();
  }

  /// Last, since the task's model may not survive inputs that it was not made for.
  Result<void> probe_candidate() {
    StageWatch const watch(m_verdict, "probe");
    m_progress.step("looking at precision and other inputs");
    ProbeOptions options{.other_inputs = m_options.other_inputs && m_options.contract == Contract::cuda_agent,
                         .float64 = m_probe_fits,
                         .rule = m_options.precision,
                         .tolerance = tolerance(),
                         .limits = call_limits()};
    auto const found = probe(*m_exchange, reference(), options, m_seed + 3, *m_verdict.correctness);
    if (!found) return fail(found.error());
    bool const tried = found->other_inputs.empty();
    m_verdict.protections.push_back(
        {"other inputs", tried,
         tried ? "it is right for inputs of other signs and sizes than get_inputs draws as well"
               : (m_options.contract == Contract::kernelbench ? "--contract kernelbench" : found->other_inputs)});
    m_verdict.correctness->precision = found->precision;
    if (!found->precision) m_verdict.not_measured["/correctness/precision"] = found->not_precise;
    return {};
  }

  Result<void> require_speedup() const {
    if (!m_options.require_speedup) return {};
    double const wanted = *m_options.require_speedup;
    for (RatioReport const& one : m_verdict.speed->ratios) {
      if (one.ratio.low < wanted) {
        return fail(Outcome::slow, fmt::format("{:.3f}x {} (low end {:.3f}); --require-speedup asks for {:g}",
                                               one.ratio.estimate, one.baseline, one.ratio.low, wanted));
      }
    }
    return {};
  }

  FreshSupply m_fresh;
  Supply& m_supply;
  const workspace::Snapshot& m_snapshot;
  const Options& m_options;
  const Installation& m_installation;
  const build::Cache& m_cache;
  fs::path m_scratch;
  util::Progress& m_progress;
  util::Deadline m_deadline;
  double m_began = util::steady_seconds();
  std::uint64_t m_seed;
  Verdict m_verdict;

  /// Let go of last: whoever takes it next finds nothing of this ask on the GPU; without a session not even the
  /// supervisor's context.
  util::FileLock m_device_lock;
  Machine m_machine;
  std::optional<ProcessorClaim> m_processors;
  build::ExtensionResult m_built;
  std::unique_ptr<LoadedReference> m_reference;
  bool m_warm = false;              ///< it had its task before this ask
  bool m_reference_loaded = false;  ///< it has it now
  std::unique_ptr<Worker> m_candidate;
  std::optional<Exchange> m_exchange;
  /// A context, its libraries' workspaces and a cache of freed blocks.
  static constexpr std::uint64_t allowed_beside_the_model = 4'000'000'000;
  std::uint64_t m_candidate_memory = 0;
  bool m_probe_fits = true;
  WorkerSetup m_setup_of_candidate;
  std::unique_ptr<KernelTrace> m_trace;  ///< none: nothing to be traced any more
  Subject m_subject;
  std::optional<std::vector<TracedKernel>> m_traced;
  std::string m_untraced;  ///< why not
  bool m_candidate_ready = false;
  bool m_candidate_loaded = false;
  bool m_admitted = false;
  int m_threads = 0;  ///< of the candidate's worker before it heard of its candidate
  Overheads m_overheads;
};

}  // namespace

Verdict judge(const workspace::Workspace& workspace, const workspace::Snapshot& snapshot, const Options& options,
              const Installation& installation, const build::Cache& cache, const fs::path& scratch,
              util::Progress& progress, util::Deadline deadline, Supply* supply) {
  return Judgement(workspace, snapshot, options, installation, cache, scratch, progress, deadline, supply).judge();
}

}  // namespace cuda_agent::judge
