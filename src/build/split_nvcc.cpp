#include "build/split_nvcc.hpp"

#include <algorithm>
#include <utility>

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include "build/diagnostics.hpp"
#include "build/host_prefix.hpp"
#include "build/object_store.hpp"
#include "build/step_run.hpp"
#include "build/tool_environment.hpp"
#include "util/files.hpp"
#include "util/hash.hpp"
#include "util/text.hpp"

namespace cuda_agent::build {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_module_id = 4096;
constexpr std::size_t longest_host_text = 256U << 20U;
constexpr int least_time_to_precompile = 5000;  // milliseconds, of those that are left
constexpr std::string_view known_version = "13.";
constexpr const char* probe_source = "kernels/probe.cu";
constexpr const char* probe_folder = "/probe";  // in the text that is kept, for the folder that it was asked in
constexpr const char* device_module_id = "device.module_id";
constexpr const char* device_dependencies = "dependencies-device.d";
constexpr const char* host_dependencies = "dependencies-host.d";
constexpr const char* plain_dependencies = "dependencies.d";

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// What nvcc says depends on no file's content, and the name that is asked for is ours: no candidate has a part in it.
std::string ask_nvcc(const Toolchain& toolchain, const Flags& flags, util::Deadline deadline) {
  auto const temporary = util::TemporaryFolder::make(fs::temp_directory_path(), "cuda-agent-nvcc-");
  if (!temporary) return {};
  std::error_code error;
  fs::path const folder = fs::canonical(temporary->path(), error);  // nvcc resolves the source's path, if it is there
  if (error || !util::make_folders((folder / probe_source).parent_path())) return {};
  if (!util::write_file(folder / probe_source, "")) return {};
  exec::Command command;
  command.argv = {toolchain.nvcc->executable.string()};
  command.argv.insert(command.argv.end(), flags.begin(), flags.end());
  for (auto const& word :
       {std::string("-MD"), std::string("-MF"), (folder / plain_dependencies).string(), std::string("-c"),
        std::string(probe_source), std::string("-o"), (folder / "object.o").string(), std::string("--dryrun")}) {
    command.argv.push_back(word);
  }
  command.env = tool_environment({toolchain.host.executable, toolchain.nvcc->executable}, folder);
  command.cwd = folder;
  command.capture_head = longest_dry_run;
  auto const answer = exec::run(command, deadline.earlier(util::Deadline::after(std::chrono::seconds(20))));
  if (!answer || !answer->status.ok()) return {};
  return replace_all(answer->output, folder.string(), probe_folder);
}

Understood understand_text(const std::string& text, const Toolchain& toolchain) {
  fs::path const folder = probe_folder;
  return understand({text,
                     {probe_source, folder, folder / "object.o", folder},
                     toolchain.host.executable,
                     toolchain.nvcc->executable});
}

// One compilation: the steps, and plain nvcc after them where they do not tell.
class SplitWork final : public Work {
 public:
  SplitWork(const NvccPlan& plan, const Cache& cache, const Toolchain& toolchain, SplitNvcc::Request request)
      : m_plan(plan),
        m_cache(cache),
        m_toolchain(toolchain),
        m_request(std::move(request)),
        m_names{m_request.source, m_request.room.seen_source(), seen("object.o"), seen("")},
        m_run(steps(), m_request.parallel) {}

  std::optional<Result<exec::ExitStatus>> poll() override {
    if (m_plain) return m_plain->poll();
    bool const precompiled = precompiling_ended();
    auto const end = m_run.poll();
    if (!end || (!end->failed && !precompiled)) return std::nullopt;
    m_precompiling.reset();
    if (!end->failed) return exec::ExitStatus{};
    if (tells_why(*end)) return end->status;
    spdlog::debug("{}: step {} of the split compilation failed ({}); nvcc is asked to compile it as a whole",
                  m_request.source, *end->failed + 1, describe(*end));
    auto plain = start_process(m_request.plain);
    if (!plain) return fail(plain.error());
    m_plain = std::move(*plain);
    return std::nullopt;
  }

  void kill() override {
    m_run.kill();
    m_precompiling.reset();
    if (m_plain) m_plain->kill();
  }

  std::string output() override { return m_plain ? m_plain->output() : m_run.output(); }

 private:
  fs::path seen(const std::string& name) const {
    return m_request.room.seen(BuildRoom::output_place(m_request.output), name);
  }

  static std::string describe(const StepRun::End& end) {
    if (end.error) return end.error->message;
    return end.refused ? "the halves do not fit together" : end.status.describe();
  }

  // An error in the source, in the words of the tool that found it. nvcc adds words of its own when a tool crashes, and
  // the host compiler reads what cudafe++ wrote: an error there may be one of ours.
  bool tells_why(const StepRun::End& end) {
    if (end.error || end.refused || end.status.signal != 0) return false;
    if (*end.failed > static_cast<std::size_t>(NvccStep::ptxas)) return false;
    std::string const words = m_run.output();
    return first_error(parse_diagnostics(words)) != nullptr && environment_failure(words).empty();
  }

  std::vector<Step> steps() {
    auto const index = [](NvccStep step) { return static_cast<std::size_t>(step); };
    std::vector<Step> steps(nvcc_steps);
    for (std::size_t i = 0; i < nvcc_steps; ++i) {
      auto const step = static_cast<NvccStep>(i);
      steps[i].command = [this, step] { return command_of(step); };
    }
    steps[index(NvccStep::cudafe)].after = {index(NvccStep::preprocess_host)};
    steps[index(NvccStep::cicc)].after = {index(NvccStep::preprocess_device)};
    steps[index(NvccStep::ptxas)].after = {index(NvccStep::cicc)};
    steps[index(NvccStep::fatbinary)].after = {index(NvccStep::ptxas)};
    steps[index(NvccStep::compile_host)].after = {index(NvccStep::cudafe), index(NvccStep::fatbinary)};
    return steps;
  }

  std::optional<exec::Command> command_of(NvccStep step) {
    auto argv = m_plan.argv(step, m_names);
    if (step == NvccStep::preprocess_device) append_dependencies(argv, device_dependencies);
    if (step == NvccStep::preprocess_host) append_dependencies(argv, host_dependencies);
    if (step == NvccStep::cicc) name_module_itself(argv);
    if (step != NvccStep::compile_host) return command_in_room(std::move(argv), {});
    if (!halves_fit()) return std::nullopt;
    return compile_host(std::move(argv));
  }

  exec::Command command_in_room(std::vector<std::string> argv, const std::vector<BuildRoom::Extra>& extras) const {
    auto command = m_request.room.command(std::move(argv), m_request.output, extras);
    set_environment(command);
    return command;
  }

  void set_environment(exec::Command& command) const {
    for (auto const& [name, value] : m_plan.environment) command.env[name] = value;
    std::string path;
    for (auto const& folder : m_plan.tool_folders) path += folder.string() + ":";
    command.env["PATH"] = path + command.env["PATH"];
  }

  // The input is replaced by what follows the headers, under the same name: the object is the same in either case.
  exec::Command compile_host(std::vector<std::string> argv) {
    fs::path const input = m_plan.value(NvccStep::cudafe, "--gen_c_file_name", m_names);
    fs::path const file = m_request.output / input.filename();
    auto const text =
        is_clang(m_toolchain.host) ? Result<std::string>(std::string()) : util::read_file(file, longest_host_text);
    auto const split = text ? split_host_text(*text) : std::nullopt;
    if (!split) return command_in_room(std::move(argv), {});
    m_prefix.emplace(m_cache, split->prefix, m_toolchain.host.identity + m_toolchain.nvcc->identity, argv,
                     input.string(), m_names.object.string());
    if (m_prefix->is_ready() && util::write_file(file, split->rest)) {
      return command_in_room(m_prefix->with_prefix(m_request.room), {m_prefix->place()});
    }
    if (!m_prefix->is_ready() && m_request.parallel > 1) precompile(split->prefix);
    return command_in_room(std::move(argv), {});
  }

  // For the next time: its failure is no failure.
  void precompile(const std::string& prefix) {
    auto command = m_prefix->prepare(m_request.room, prefix);
    if (!command) return;
    set_environment(*command);
    if (auto work = start_process(*command)) m_precompiling = std::move(*work);
  }

  bool precompiling_ended() {
    if (!m_precompiling) return true;
    auto const ended = m_precompiling->poll();
    if (!ended) return m_request.deadline.remaining_ms() < least_time_to_precompile;
    if (*ended && (*ended)->ok()) {
      m_prefix->publish();
    } else {
      spdlog::debug("{}: the headers could not be precompiled: {}", m_request.source,
                    util::escape_untrusted(m_precompiling->output(), 2000));
    }
    m_precompiling.reset();
    return true;
  }

  void append_dependencies(std::vector<std::string>& argv, const char* file) const {
    for (auto const& word : {std::string("-MD"), std::string("-MF"), seen(file).string()}) argv.push_back(word);
  }

  void name_module_itself(std::vector<std::string>& argv) const {
    auto const option = std::find(argv.begin(), argv.end(), "--module_id_file_name");
    *(option + 1) = seen(device_module_id).string();
    argv.insert(option, "--gen_module_id_file");
  }

  bool halves_fit() const {
    fs::path const host = m_plan.value(NvccStep::cudafe, "--module_id_file_name", m_names);
    auto const of_host = util::read_file(m_request.output / host.filename(), longest_module_id);
    auto const of_device = util::read_file(m_request.output / device_module_id, longest_module_id);
    return of_host && of_device && !of_host->empty() && *of_host == *of_device;
  }

  const NvccPlan& m_plan;
  const Cache& m_cache;
  const Toolchain& m_toolchain;
  SplitNvcc::Request m_request;
  NvccNames m_names;
  StepRun m_run;
  std::optional<HostPrefix> m_prefix;
  std::unique_ptr<Work> m_precompiling;
  std::unique_ptr<Work> m_plain;
};

}  // namespace

std::optional<SplitNvcc> SplitNvcc::open(const Cache& cache, const Toolchain& toolchain, const Flags& flags,
                                         util::Deadline deadline) {
  if (toolchain.nvcc->version.rfind(known_version, 0) != 0) {
    spdlog::debug("nvcc {} compiles as a whole: its steps are not known", toolchain.nvcc->version);
    return std::nullopt;
  }
  std::string const key = util::sha256_hex(fmt::format("1\n{}\n{}\n{}\n{}\n{}", toolchain.nvcc->identity,
                                                       toolchain.nvcc->executable.string(), toolchain.host.identity,
                                                       toolchain.host.executable.string(), util::join(flags, "\n")));
  auto const kept = ObjectStore(cache).place("nvcc-steps", key, ".txt");
  if (auto const text = util::read_file(kept, longest_dry_run)) {
    if (auto understood = understand_text(*text, toolchain); understood.plan)
      return SplitNvcc(std::move(*understood.plan), cache, toolchain);
  }
  std::string const text = ask_nvcc(toolchain, flags, deadline);
  auto understood = understand_text(text, toolchain);
  if (!understood.plan) {
    spdlog::debug("nvcc compiles as a whole: its steps were not understood: {}",
                  util::escape_untrusted(understood.why_not, 2000));
    return std::nullopt;
  }
  if (util::make_folders(kept.parent_path())) {
    [[maybe_unused]] auto const written = util::write_file(kept, text);
  }
  return SplitNvcc(std::move(*understood.plan), cache, toolchain);
}

bool SplitNvcc::fits(const std::string& source) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-/.";
  return source.find_first_not_of(plain) == std::string::npos && source[0] != '-';
}

Result<std::unique_ptr<Work>> SplitNvcc::start(Request request) const {
  return std::make_unique<SplitWork>(m_plan, *m_cache, *m_toolchain, std::move(request));
}

std::vector<std::string> SplitNvcc::dependency_files() {
  return {host_dependencies, device_dependencies, plain_dependencies};
}

}  // namespace cuda_agent::build
