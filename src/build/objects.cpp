#include "build/objects.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include <spdlog/fmt/fmt.h>

#include "build/compile_error.hpp"
#include "build/dependencies.hpp"
#include "build/diagnostics.hpp"
#include "build/jobs.hpp"
#include "build/precompiled_header.hpp"
#include "build/ptxas.hpp"
#include "build/split_nvcc.hpp"
#include "util/files.hpp"
#include "util/hash.hpp"
#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_dependency_file = 8U << 20U;
constexpr const char* cache_schema = "1";

// Measured with torch 2.11 on two cores: a binding without the precompiled header, with it, and the header itself.
constexpr double seconds_without_header = 14;
constexpr double seconds_with_header = 4;
constexpr double seconds_of_header = 23;

struct Unit {
  SourceFile source;
  bool is_judges = false;    // binding.cpp, whose failure is not the candidate's
  bool uses_header = false;  // the precompiled one
  std::string key;
  std::optional<StoredObject> found;
  std::optional<std::size_t> job;
  fs::path output;

  bool is_cuda() const { return source.kind == SourceKind::cuda; }
  const char* tool() const { return is_cuda() ? "nvcc" : "host"; }
};

// -march=native means another thing on another processor, and the cache may be shared between machines.
std::string processor() {
  auto const text = util::read_file("/proc/cpuinfo", 1 << 20);
  if (!text) return {};
  for (auto const& line : util::split_lines(*text)) {
    if (line.rfind("flags", 0) == 0 || line.rfind("Features", 0) == 0) return util::sha256_hex(line);
  }
  return {};
}

class ObjectBuilder {
 public:
  ObjectBuilder(const ObjectsPlan& plan, const BuildRoom& room, const Toolchain& toolchain,
                const Interpreter& interpreter, const Cache& cache, util::Deadline deadline)
      : m_plan(plan),
        m_room(room),
        m_toolchain(toolchain),
        m_interpreter(interpreter),
        m_cache(cache),
        m_deadline(deadline),
        m_store(cache),
        m_files(room.source()) {}

  Objects build(util::Progress& progress) {
    if (auto error = prepare()) return failed(std::move(*error));
    open_split();
    std::vector<Job> jobs;
    if (auto error = plan_jobs(jobs, progress)) return failed(std::move(*error));
    m_jobs = static_cast<int>(jobs.size());
    auto const outcomes = run_jobs(jobs, m_plan.jobs, progress, m_deadline);
    return collect(outcomes);
  }

 private:
  static Objects failed(Error error) {
    Objects objects;
    objects.error = std::move(error);
    return objects;
  }

  Flags flags_of(const Unit& unit) const {
    return unit.is_cuda() ? nvcc_flags(*m_plan.architecture, m_toolchain, m_interpreter)
                          : host_flags(unit.source.kind, m_plan.target, m_toolchain, m_interpreter);
  }

  std::optional<Error> prepare() {
    m_units.push_back({{module_source, SourceKind::binding}, true, false, {}, {}, {}, {}});
    for (auto const& source : m_plan.sources.compiled) m_units.push_back({source, false, false, {}, {}, {}, {}});
    for (auto& unit : m_units) {
      auto const text = util::read_file(m_room.source() / unit.source.path, largest_source);
      if (!text) return text.error();
      unit.uses_header = !unit.is_judges && unit.source.kind == SourceKind::binding && PrecompiledHeader::fits(*text);
      if (unit.uses_header && !m_header) {
        auto header = PrecompiledHeader::open(m_cache, m_plan.target, flags_of(unit), m_toolchain, m_interpreter);
        if (!header) return header.error();
        m_header = std::move(*header);
      }
      unit.key = key_of(unit, *text);
      unit.found = m_store.find(unit.key, m_files);
    }
    return std::nullopt;
  }

  void open_split() {
    auto const unit =
        std::find_if(m_units.begin(), m_units.end(), [](const Unit& u) { return u.is_cuda() && !u.found; });
    if (unit != m_units.end()) m_split = SplitNvcc::open(m_cache, m_toolchain, flags_of(*unit), m_deadline);
  }

  std::string key_of(const Unit& unit, const std::string& text) const {
    util::Sha256 key;
    auto const add = [&](const std::string& part) { key.update(fmt::format("{}\n{}\n", part.size(), part)); };
    add(cache_schema);
    add(unit.source.path);
    add(text);
    add(m_toolchain.host.identity);
    if (unit.is_cuda()) add(m_toolchain.nvcc->identity);
    for (auto const& flag : flags_of(unit)) add(flag);
    add(m_interpreter.torch_version);
    add(m_interpreter.python_version);
    if (unit.source.kind == SourceKind::host && m_plan.target == Target::cpu) add(processor());
    if (unit.uses_header) add(m_header->key());
    // A new header can hide another one of the same name; which files were read before does not tell.
    if (!unit.is_judges) {
      for (auto const& other : m_plan.sources.others) add(other);
    }
    return key.hex();
  }

  std::optional<Error> plan_jobs(std::vector<Job>& jobs, util::Progress& progress) {
    plan_units(jobs, [](const Unit& unit) { return unit.is_cuda(); });
    plan_units(jobs, [](const Unit& unit) { return unit.source.kind == SourceKind::host; });
    auto const bindings =
        std::count_if(m_units.begin(), m_units.end(), [](const Unit& unit) { return !unit.found && unit.uses_header; });
    bool const make_header = bindings > 0 && !m_header->is_ready();
    if (make_header) {
      auto job = m_header->job(m_room, m_toolchain,
                               host_flags(SourceKind::binding, m_plan.target, m_toolchain, m_interpreter));
      if (!job) return job.error();
      progress.note("precompiling torch's headers (once for this torch and compiler; about 25 seconds)");
      m_header_job = jobs.size();
      jobs.push_back(std::move(*job));
    }
    plan_units(jobs, [](const Unit& unit) { return unit.source.kind == SourceKind::binding; });
    if (make_header && waiting_is_faster(static_cast<double>(bindings))) {
      for (auto const& unit : m_units) {
        if (unit.job && unit.uses_header) jobs[*unit.job].after = m_header_job;
      }
    }
    if (m_output_error) return m_output_error;
    return std::nullopt;
  }

  // With few bindings and free cores they are compiled without the header while it is being made for the next time.
  bool waiting_is_faster(double bindings) const {
    if (m_plan.jobs < 2) return true;
    double const others = m_plan.jobs - 1;
    double const direct = seconds_without_header * std::ceil(bindings / others);
    return direct > seconds_of_header + seconds_with_header * std::ceil(bindings / m_plan.jobs);
  }

  template <typename Predicate>
  void plan_units(std::vector<Job>& jobs, Predicate wanted) {
    for (std::size_t i = 0; i < m_units.size(); ++i) {
      auto& unit = m_units[i];
      if (unit.found || unit.job || !wanted(unit)) continue;
      auto output = m_room.make_output(fmt::format("{}", i));
      if (!output) {
        m_output_error = output.error();
        return;
      }
      unit.output = *output;
      unit.job = jobs.size();
      Job job;
      job.label = unit.source.path;
      job.timeout = m_plan.object_timeout;
      if (m_split && unit.is_cuda() && SplitNvcc::fits(unit.source.path)) {
        job.start = [this, i] { return start_split(m_units[i]); };
      } else {
        job.command = [this, i] { return command_of(m_units[i]); };
      }
      jobs.push_back(std::move(job));
    }
  }

  // Two steps at a time only where no other file waits for the processor that the second one takes.
  Result<std::unique_ptr<Work>> start_split(const Unit& unit) const {
    auto const cuda = std::count_if(m_units.begin(), m_units.end(), [](const Unit& u) { return u.is_cuda() && u.job; });
    int const parallel = m_plan.jobs >= m_jobs + static_cast<int>(cuda) ? 2 : 1;
    auto const limit = util::Deadline::after(std::chrono::duration<double>(m_plan.object_timeout));
    return m_split->start(
        {m_room, unit.source.path, unit.output, parallel, limit.earlier(m_deadline), command_of(unit)});
  }

  exec::Command command_of(const Unit& unit) const {
    bool const cuda = unit.is_cuda();
    Flags argv = {(cuda ? m_toolchain.nvcc->executable : m_toolchain.host.executable).string()};
    auto const flags = flags_of(unit);
    argv.insert(argv.end(), flags.begin(), flags.end());
    std::vector<BuildRoom::Extra> extras;
    if (unit.uses_header) {
      auto const include = m_header->include_flags(m_room);
      argv.insert(argv.end(), include.begin(), include.end());
      extras.push_back(m_header->place());
    }
    auto const place = BuildRoom::output_place(unit.output);
    for (auto const& word :
         {std::string("-MD"), std::string("-MF"), m_room.seen(place, "dependencies.d").string(), std::string("-c"),
          unit.source.path, std::string("-o"), m_room.seen(place, "object.o").string()}) {
      argv.push_back(word);
    }
    return m_room.command(std::move(argv), unit.output, extras);
  }

  Objects collect(const std::vector<JobOutcome>& outcomes) {
    Objects objects;
    for (auto& unit : m_units) {
      if (unit.found) {
        add(objects, unit, *unit.found, nullptr);
      } else {
        collect_compiled(objects, unit, outcomes[*unit.job]);
      }
    }
    return objects;
  }

  /// `made`: null when it was there already.
  static void add(Objects& objects, const Unit& unit, const StoredObject& stored, const JobOutcome* made) {
    objects.report.push_back({unit.source.path, unit.tool(), made != nullptr ? made->seconds : 0, made == nullptr,
                              stored.record.diagnostics, made != nullptr ? made->start : 0});
    objects.kernels.insert(objects.kernels.end(), stored.record.kernels.begin(), stored.record.kernels.end());
    objects.stored.emplace_back(unit.source.path, stored);
  }

  void collect_compiled(Objects& objects, const Unit& unit, const JobOutcome& outcome) {
    if (outcome.state == JobOutcome::State::not_run) return;
    ObjectRecord record;
    record.diagnostics = diagnostics_of(unit, outcome.output);
    record.seconds = outcome.seconds;
    if (!outcome.ok()) {
      objects.report.push_back(
          {unit.source.path, unit.tool(), outcome.seconds, false, record.diagnostics, outcome.start});
      set_worse(objects.error, failure_of(unit, outcome, record.diagnostics));
      return;
    }
    if (unit.is_cuda()) record.kernels = parse_ptxas(outcome.output);
    auto stored = m_store.put(unit.key, dependencies_of(unit), m_files, unit.output / "object.o", std::move(record));
    if (!stored) {
      set_worse(objects.error, stored.error());
      return;
    }
    add(objects, unit, *stored, &outcome);
  }

  // One error speaks for all: an interrupt first, then what is wrong with the machine, then the first source's.
  static void set_worse(std::optional<Error>& error, Error other) {
    auto const rank = [](const Error& e) {
      return e.outcome == Outcome::interrupted ? 2 : e.outcome == Outcome::environment_error ? 1 : 0;
    };
    if (!error || rank(other) > rank(*error)) error = std::move(other);
  }

  std::vector<Diagnostic> diagnostics_of(const Unit& unit, const std::string& output) const {
    auto diagnostics = parse_diagnostics(output, [this](const std::string& file, int line) {
      auto const text = fs::path(file).is_relative() ? util::read_file(m_room.source() / file, largest_source)
                                                     : Result<std::string>(std::string());
      auto const lines = util::split_lines(text ? *text : std::string());
      return line >= 1 && static_cast<std::size_t>(line) <= lines.size() ? lines[line - 1] : std::string();
    });
    for (auto& diagnostic : diagnostics) {
      if (diagnostic.file.empty()) diagnostic.file = unit.source.path;
    }
    return diagnostics;
  }

  Error failure_of(const Unit& unit, const JobOutcome& outcome, const std::vector<Diagnostic>& diagnostics) const {
    ToolFailure failure{unit.source.path, unit.tool(), m_plan.object_timeout, !unit.is_judges};
    return explain_failure(failure, outcome, diagnostics);
  }

  // nvcc's host and device half may read different files; both count.
  std::vector<std::string> dependencies_of(const Unit& unit) const {
    std::set<std::string> files = {unit.source.path};
    for (auto const& name : SplitNvcc::dependency_files()) {
      auto const text = util::read_file(unit.output / name, largest_dependency_file);
      if (!text) continue;
      for (auto& file : parse_dependencies(*text)) files.insert(std::move(file));
    }
    if (unit.uses_header) {  // its text is part of the key; whether it was precompiled makes no difference
      std::string const folder = m_room.seen(m_header->place(), "").string();
      std::erase_if(files, [&](const std::string& file) { return file.rfind(folder, 0) == 0; });
    }
    return {files.begin(), files.end()};
  }

  const ObjectsPlan& m_plan;
  const BuildRoom& m_room;
  const Toolchain& m_toolchain;
  const Interpreter& m_interpreter;
  const Cache& m_cache;
  util::Deadline m_deadline;
  ObjectStore m_store;
  FileStates m_files;
  std::vector<Unit> m_units;
  std::optional<PrecompiledHeader> m_header;
  std::optional<std::size_t> m_header_job;
  std::optional<Error> m_output_error;
  std::optional<SplitNvcc> m_split;
  int m_jobs = 0;
};

}  // namespace

Objects build_objects(const ObjectsPlan& plan, const BuildRoom& room, const Toolchain& toolchain,
                      const Interpreter& interpreter, const Cache& cache, util::Progress& progress,
                      util::Deadline deadline) {
  return ObjectBuilder(plan, room, toolchain, interpreter, cache, deadline).build(progress);
}

}  // namespace cuda_agent::build
