// cuda-agent selftest: the exploits that must be caught and the look-alikes that must pass, on this machine; with
// --prove-layers, that the layers which catch them are what does.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/gpu_probe.hpp"
#include "cli/installation.hpp"
#include "cli/outcome.hpp"
#include "exec/sandbox.hpp"
#include "selftest/case.hpp"
#include "selftest/results_json.hpp"
#include "selftest/run.hpp"
#include "selftest/selection.hpp"
#include "selftest/summary.hpp"
#include "selftest/table.hpp"
#include "util/files.hpp"
#include "util/text.hpp"

namespace cuda_agent::cli {

namespace {

/// Exploits are not let loose on somebody's machine.
Result<void> need_sandbox() {
  auto const& support = exec::probe_sandbox();
  if (support.bubblewrap || support.landlock > 0) return {};
  return fail(Outcome::environment_error,
              fmt::format("the exploits are run in a sandbox only, and there is none here: {}", support.reason),
              {"run `cuda-agent doctor`"});
}

Result<bool> find_gpu(const std::string& device) {
  if (device == "cpu") return false;
  auto const probe = probe_gpus();
  if (device == "cuda" && probe.gpus.empty()) {
    return fail(Outcome::environment_error, fmt::format("--device cuda: {}", probe.problem),
                {"--device cpu leaves out what needs a GPU"});
  }
  return !probe.gpus.empty();
}

Result<std::vector<selftest::Case>> chosen_cases(const SelftestOptions& options, const std::filesystem::path& folder,
                                                 bool gpu) {
  auto cases = selftest::read_cases(folder);
  if (!cases) return cases;
  if (options.quick) cases = selftest::quick(*cases, gpu);
  cases = selftest::matching(*cases, options.only);
  if (!cases->empty()) return selftest::repeated(*cases, options.repeat, gpu);
  return fail(Outcome::usage_error,
              fmt::format("no case matches '{}'{}", util::escape_untrusted(options.only, 256),
                          options.quick ? " among those of --quick" : ""),
              {"a pattern is for a name such as exploits/zeros: --only 'exploits/cache_*', --only zeros"});
}

/// Those of GPUs take turns; a case on the CPU keeps about two cores busy.
int default_jobs(bool gpu) { return gpu ? 1 : std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 2); }

/// Says which cases run and how each ended.
class Shown {
 public:
  Shown(util::Progress& progress, std::size_t count) : m_progress(progress), m_count(count) {}

  selftest::Watcher watcher() {
    return {[this](const selftest::Case& one) { begins(one); },
            [this](const selftest::CaseResult& result) { ends(result); }};
  }

 private:
  void begins(const selftest::Case& one) {
    if (m_ended == 0) m_progress.step(fmt::format("0 of {}: {} begins", m_count, one.name));
  }
  void ends(const selftest::CaseResult& result) {
    ++m_ended;
    auto const text =
        fmt::format("{} of {}: {}: {} ({}){}, {:.1f} s", m_ended, m_count, result.one.name,
                    result.answer.outcome.empty() ? "no verdict" : result.answer.outcome, result.answer.exit_code,
                    result.problems.empty() ? " as expected" : "", result.seconds + result.proof.seconds);
    m_progress.step(text);
    for (auto const* const problems : {&result.problems, &result.proof.problems}) {
      for (auto const& problem : *problems) m_progress.note(fmt::format("{}: {}", result.one.name, problem));
    }
  }

  util::Progress& m_progress;
  std::size_t m_count;
  std::size_t m_ended = 0;
};

Result<std::vector<selftest::CaseResult>> run_chosen(const SelftestOptions& options, util::Progress& progress) {
  auto const installation = find_installation();
  if (!installation) return fail(installation.error());
  if (auto there = need_sandbox(); !there) return fail(there.error());
  auto const gpu = find_gpu(options.device);
  if (!gpu) return fail(gpu.error());
  auto const cases = chosen_cases(options, installation->selftest, *gpu);
  if (!cases) return fail(cases.error());

  selftest::Options run;
  run.binary = util::own_executable();
  run.tasks = installation->selftest / "exploits" / "tasks";
  run.python = options.python;
  run.jobs = options.jobs > 0 ? options.jobs : default_jobs(*gpu);
  run.gpu = *gpu;
  run.keep = options.keep;
  run.prove_layers = options.prove_layers;
  auto const count = std::count_if(cases->begin(), cases->end(), [&](const selftest::Case& one) {
    return !one.known_gap() && (*gpu || !one.needs_cuda);
  });
  Shown shown(progress, static_cast<std::size_t>(count));
  return selftest::run_cases(*cases, run, shown.watcher());
}

}  // namespace

int run_selftest(const SelftestOptions& options, Console& console) {
  auto progress = make_progress(console, verbosity(options.output));
  auto const results = run_chosen(options, *progress);
  progress.reset();
  if (!results) return print_failure(console, "selftest", results.error(), options.output.json);
  auto const code = exit_code(selftest::outcome_of(selftest::count(*results)));
  std::string text;
  if (options.output.json) {
    auto object = selftest::as_json(*results);
    object.update({{"schema", "cuda-agent/selftest/1"}, {"version", version()}, {"exit_code", code}});
    text = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  } else {
    text = selftest::as_table(*results, options.output.verbose);
  }
  auto const printed = print_result(console, text);
  return code != 0 ? code : printed;
}

void setup_selftest(CLI::App& app, Action& action) {
  auto options = std::make_shared<SelftestOptions>();
  auto* const command = add_command(app, "selftest", "Check the judge itself: known exploits must be caught here");
  command->add_flag("--quick", options->quick, "One exploit of each kind and their look-alikes: two minutes");
  command->add_option("--only", options->only, "The cases with such a name, as 'exploits/cache_*' [default: all]")
      ->option_text("PATTERN");
  command
      ->add_option("--device", options->device,
                   "cpu leaves out what needs a GPU, cuda fails without one [default: auto]")
      ->check(one_of({"auto", "cuda", "cpu"}))
      ->option_text("auto|cuda|cpu");
  command
      ->add_option("--jobs", options->jobs,
                   "Cases that are judged at a time [default: 1 with a GPU, else half as many as there are cores]")
      ->transform(whole_number_between(1, 256))
      ->option_text("N");
  command->add_option("--repeat", options->repeat, "How often each case is judged [default: 1]")
      ->transform(whole_number_between(1, 1000))
      ->option_text("N");
  command->add_flag("--prove-layers", options->prove_layers,
                    "Judge each exploit again with the layers that catch it switched off, where they can be: it must "
                    "get through then, and the policy alone must refuse what it is said to");
  command->add_flag("--keep", options->keep, "Keep the workspaces, and say where they are");
  add_python_flag(*command, options->python);
  add_output_flags(*command, options->output);
  command->callback(
      [options, &action] { action = [options](Console& console) { return run_selftest(*options, console); }; });
}

}  // namespace cuda_agent::cli
