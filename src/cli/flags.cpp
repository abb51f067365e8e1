#include "cli/flags.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "build/architecture.hpp"
#include "cli/seeds.hpp"
#include "util/text.hpp"

namespace cuda_agent::cli {

namespace {

std::optional<double> finite_number(const std::string& text) {
  char* end = nullptr;
  auto const value = std::strtod(text.c_str(), &end);
  auto const whole = !text.empty() && end == text.c_str() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// Decimal digits only: CLI11 would read 010 as eight.
template <typename Number>
std::optional<Number> whole_number(const std::string& text) {
  Number value{};
  auto const* const end = text.data() + text.size();
  auto const result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end ? std::optional(value) : std::nullopt;
}

CLI::Validator validator(std::function<std::string(std::string&)> check) { return {std::move(check), ""}; }

/// A flag that takes one of a few words, each of which stands for a value.
template <typename Value>
void add_choice(CLI::App& command, const std::string& name, Value& value,
                const std::vector<std::pair<std::string, Value>>& choices, const std::string& description) {
  std::vector<std::string> words;
  std::map<std::string, Value> values;
  std::string shown_default;
  words.reserve(choices.size());
  for (auto const& [word, meaning] : choices) {
    words.push_back(word);
    values.emplace(word, meaning);
    if (meaning == value) shown_default = word;
  }
  command
      .add_option_function<std::string>(
          name, [&value, values](const std::string& word) { value = values.at(word); },
          fmt::format("{} [default: {}]", description, shown_default))
      ->check(one_of(words))
      ->option_text(util::join(words, "|"));
}

}  // namespace

std::optional<std::uint64_t> size_in_bytes(const std::string& text) {
  static const std::map<std::string, double> units = {{"B", 1},        {"kB", 1e3},     {"MB", 1e6},
                                                      {"GB", 1e9},     {"TB", 1e12},    {"KiB", 0x1p10},
                                                      {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
  auto const end = std::min(text.find_first_not_of("0123456789."), text.size());
  auto const unit = units.find(text.substr(end));
  auto const number = finite_number(text.substr(0, end));
  if (unit == units.end() || !number) return std::nullopt;
  double const bytes = *number * unit->second;
  constexpr double most = 0x1p60;
  if (bytes < 1 || bytes > most) return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

CLI::Validator number_between(double low, double high) {
  return validator([low, high](std::string& text) {
    auto const value = finite_number(text);
    if (value && *value >= low && *value <= high) return std::string();
    return fmt::format("'{}' is no number from {} to {}", util::escape_untrusted(text, 128), low, high);
  });
}

CLI::Validator number_above(double low, double high) {
  return validator([low, high](std::string& text) {
    auto const value = finite_number(text);
    if (value && *value > low && *value <= high) return std::string();
    return fmt::format("'{}' is no number above {} and up to {}", util::escape_untrusted(text, 128), low, high);
  });
}

CLI::Validator whole_number_between(long long low, long long high) {
  return validator([low, high](std::string& text) {
    auto const value = whole_number<long long>(text);
    if (!value || *value < low || *value > high) {
      return fmt::format("'{}' is no whole number from {} to {}", util::escape_untrusted(text, 128), low, high);
    }
    text = std::to_string(*value);
    return std::string();
  });
}

CLI::Validator one_of(std::vector<std::string> words) {
  return validator([words = std::move(words)](std::string& text) {
    for (auto const& word : words) {
      if (word == text) return std::string();
    }
    auto const meant = util::closest(text, words);
    return fmt::format("'{}' is none of {}{}", util::escape_untrusted(text, 128), util::join(words, ", "),
                       meant ? fmt::format("; did you mean '{}'?", *meant) : "");
  });
}

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& description) {
  auto* const command = app.add_subcommand(name, description);
  command->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  return command;
}

void add_output_flags(CLI::App& command, OutputOptions& options) {
  command.add_flag("--json", options.json, "Print one JSON object on standard output, also on failure");
  auto* const verbose = command.add_flag("-v,--verbose", options.verbose, "Show everything that is known");
  auto* const quiet = command.add_flag("-q,--quiet", options.quiet, "No progress; the result only; not with -v");
  quiet->excludes(verbose);
  // Else help would say it in CLI11's own words, in both lines.
  for (auto* const flag : {verbose, quiet}) flag->option_text(" ");
}

void add_timings_flags(CLI::App& command, OutputOptions& options) {
  command.add_flag("--timings", options.timings, "Show where the time went, and what the answer waited for");
  command
      .add_option("--timings-trace", options.timings_trace,
                  "Write that to a file for chrome://tracing or ui.perfetto.dev [default: no file]")
      ->option_text("FILE");
}

void add_workspace(CLI::App& command, std::string& folder) {
  command.add_option("workspace", folder, "The workspace folder [default: the current folder]")->option_text("FOLDER");
}

void add_python_flag(CLI::App& command, std::string& python) {
  command
      .add_option("--python", python,
                  "The Python interpreter with torch [default: $CUDA_AGENT_PYTHON, .venv of the installation, "
                  "$VIRTUAL_ENV, python3]")
      ->option_text("FILE");
}

void add_timeout_flag(CLI::App& command, double& seconds) {
  command
      .add_option("--timeout", seconds,
                  fmt::format("Time limit of the whole command, waits included, in seconds [default: {}]", seconds))
      ->check(number_above(0, 86400))
      ->option_text("SECONDS");
}

void add_time_limits(CLI::App& command, judge::Options& options) {
  add_timeout_flag(command, options.timeout);
  command
      .add_option("--compile-timeout", options.compile_timeout,
                  fmt::format("Time limit of one compiler, in seconds [default: {}]", options.compile_timeout))
      ->check(number_above(0, 86400))
      ->option_text("SECONDS");
}

void add_device_flags(CLI::App& command, judge::Options& options) {
  add_choice<judge::Device>(
      command, "--device", options.device,
      {{"auto", judge::Device::automatic}, {"cuda", judge::Device::cuda}, {"cpu", judge::Device::cpu}},
      "Where the kernels run");
  command.add_option("--gpu", options.gpu, "The GPU, by index or UUID [default: the first visible one]")
      ->option_text("GPU");
  command
      .add_option_function<std::string>(
          "--python", [&options](const std::string& path) { options.python = path; },
          "The Python interpreter with torch [default: $CUDA_AGENT_PYTHON, .venv of the installation, $VIRTUAL_ENV, "
          "python3]")
      ->option_text("FILE");
}

void add_build_flags(CLI::App& command, judge::Options& options) {
  auto const is_architecture = validator([](std::string& text) {
    return build::parse_architecture(text)
               ? std::string()
               : fmt::format("'{}' is no architecture such as 90a, sm_90a or 9.0a", util::escape_untrusted(text, 128));
  });
  command
      .add_option("--arch", options.architecture,
                  "The GPU architecture to build for, such as 90a or sm_90a [default: the GPU's, or "
                  "$TORCH_CUDA_ARCH_LIST]")
      ->check(is_architecture)
      ->option_text("ARCH");
}

void add_task_flags(CLI::App& command, AskOptions& options) {
  command
      .add_option("--task", options.task,
                  "Take model.py from this folder, whatever the workspace has [default: the workspace's]")
      ->option_text("FOLDER");
  auto const is_hash = validator([](std::string& text) {
    bool const good = text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
    return good ? std::string()
                : fmt::format("'{}' is no SHA-256 in 64 small hexadecimal digits", util::escape_untrusted(text, 128));
  });
  command
      .add_option("--task-sha256", options.task_sha256,
                  "Refuse another model.py than the one with this SHA-256 [default: any]")
      ->check(is_hash)
      ->option_text("HASH");
  add_choice<bool>(command, "--require-sandbox", options.judge.strict_sandbox, {{"any", false}, {"strict", true}},
                   "With strict, refuse to run a candidate where a protection is not in force");
}

void add_size_flag(CLI::App& command, const std::string& name, std::uint64_t& bytes, const std::string& description) {
  auto const is_size = validator([](std::string& text) {
    return size_in_bytes(text)
               ? std::string()
               : fmt::format("'{}' is no size such as 8GB, 1.5GB or 512MiB", util::escape_untrusted(text, 128));
  });
  command
      .add_option_function<std::string>(
          name, [&bytes](const std::string& text) { bytes = size_in_bytes(text).value_or(0); }, description)
      ->check(is_size)
      ->option_text("SIZE");
}

void add_session_flag(CLI::App& command, AskOptions& options) {
  auto* const with = command.add_flag_callback(
      "--session", [&options] { options.session = true; },
      "Let a resident session answer, which is started if need be: the rule on the CPU, but where CI=true");
  auto* const without = command.add_flag_callback(
      "--no-session", [&options] { options.session = false; },
      "Judge in this process, with workers of its own: the rule on a GPU, and where CI=true");
  with->excludes(without);
  for (auto* const flag : {with, without}) flag->option_text(" ");
}

void add_policy_flag(CLI::App& command, judge::Options& options) {
  add_choice<bool>(command, "--policy", options.policy, {{"default", true}, {"none", false}},
                   "The rules that a candidate must keep; with none, for experiments, there is no reward");
}

void add_layer_flag(CLI::App& command, judge::Options& options) {
  add_choice<judge::Layer>(command, "--without", options.without,
                           {{"nothing", judge::Layer::none},
                            {"comparison", judge::Layer::comparison},
                            {"fresh-inputs", judge::Layer::fresh_inputs},
                            {"seal", judge::Layer::seal},
                            {"stopping", judge::Layer::stopping}},
                           "Leave out one layer of protection, to see what it is there for; there is no reward then");
}

void add_check_flags(CLI::App& command, judge::Options& options, SeedFlag seed) {
  command
      .add_option("--trials", options.trials,
                  fmt::format("Random inputs to check the candidate on [default: {}]", options.trials))
      ->transform(whole_number_between(1, 1000))
      ->option_text("N");
  auto const is_seed = validator([](std::string& text) {
    return seeds_in(text) ? std::string()
                          : fmt::format("'{}' is no whole number from 0 to 18446744073709551615",
                                        util::escape_untrusted(text, 128));
  });
  if (seed == SeedFlag::yes)
    command
        .add_option_function<std::string>(
            "--seed", [&options](const std::string& text) { seeds_in(text).value_or(Seeds{}).set(options); },
            "Replay the inputs of this seed; gives no reward [default: fresh seeds]")
        ->check(is_seed)
        ->option_text("N");
  command.add_option("--rtol", options.rtol, "Relative tolerance of every dtype [default: by dtype]")
      ->check(number_between(0, 1))
      ->option_text("X");
  command.add_option("--atol", options.atol, "Absolute tolerance of every dtype [default: by dtype]")
      ->check(number_between(0, 1e6))
      ->option_text("X");
  add_choice<judge::Contract>(
      command, "--contract", options.contract,
      {{"cuda-agent", judge::Contract::cuda_agent}, {"kernelbench", judge::Contract::kernelbench}},
      "How both models are made alike: eval mode with copied weights, or KernelBench's one seed for both");
  add_choice<judge::PrecisionRule>(
      command, "--precision", options.precision,
      {{"same", judge::PrecisionRule::same}, {"any", judge::PrecisionRule::any}, {"tf32", judge::PrecisionRule::tf32}},
      "How precise a candidate must be for a reward above 1: as eager, as the tolerance, or TF32 for eager as well");
  command.add_flag_callback(
      "--only-drawn-inputs", [&options] { options.other_inputs = false; },
      "Do not try inputs of other signs and sizes than get_inputs draws: for tasks to which these mean nothing");
  add_size_flag(
      command, "--gpu-memory", options.gpu_memory,
      "End a candidate that holds more of the GPU's memory between its calls, such as 8GB or 512MiB [default: "
      "no limit but what the judge needs]");
  command.add_flag("--keep-going", options.keep_going, "Check all inputs, also after one failed");
  command
      .add_option("--threads", options.threads,
                  "Processor threads of every model on the CPU [default: all cores but one, 4 at the most]")
      ->transform(whole_number_between(1, 1024))
      ->option_text("N");
  command
      .add_option("--call-timeout", options.call_timeout,
                  fmt::format("Time limit of one call of the candidate and of its import, in seconds [default: {}]",
                              options.call_timeout))
      ->check(number_above(0, 86400))
      ->option_text("SECONDS");
}

void add_speed_flags(CLI::App& command, judge::Options& options) {
  add_choice<judge::Baseline>(
      command, "--baseline", options.baseline,
      {{"eager", judge::Baseline::eager}, {"compiled", judge::Baseline::compiled}, {"both", judge::Baseline::both}},
      "What the candidate is timed against");
  std::vector<std::string> const modes{"default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"};
  command
      .add_option("--compile-mode", options.compile_mode,
                  fmt::format("Mode of torch.compile for the compiled baseline [default: {}]", options.compile_mode))
      ->check(one_of(modes))
      ->option_text(util::join(modes, "|"));
  add_choice<bool>(command, "--trace-kernels", options.trace_kernels, {{"no", false}, {"yes", true}},
                   "On a GPU, tell which kernels the candidate launches and its own ones' share; takes some seconds");
  command
      .add_option("--patience", options.patience,
                  options.patience
                      ? "How long to time on while an interval is wider than 5 % [default: 3]"
                      : "How long to time on while an interval is wider than 5 % [default: 0.4 on the CPU, "
                        "1 on a GPU]")
      ->check(number_above(0, 600))
      ->option_text("SECONDS");
  command
      .add_option("--require-speedup", options.require_speedup,
                  "Exit with code 7 unless the candidate is surely X times as fast as every baseline that was timed "
                  "[default: no such demand]")
      ->check(number_above(0, 1e6))
      ->option_text("X");
}

}  // namespace cuda_agent::cli
