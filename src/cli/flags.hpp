// Flags that several commands share, and checks of their values. Knows CLI11; include it from setup code only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/commands.hpp"

namespace cuda_agent::cli {

/// A decimal number and a unit without space between: B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB; none for
/// anything else, less than one byte, or more than 2⁶⁰.
std::optional<std::uint64_t> size_in_bytes(const std::string& text);

/// A finite number, `low` <= x <= `high`.
CLI::Validator number_between(double low, double high);
/// A finite number, `low` < x <= `high`.
CLI::Validator number_above(double low, double high);
/// A decimal whole number, `low` <= x <= `high`. Give it to `transform`: it takes leading zeros away, which CLI11 would
/// read as octal.
CLI::Validator whole_number_between(long long low, long long high);
/// One of a few words; a near miss is answered with "did you mean".
CLI::Validator one_of(std::vector<std::string> words);

/// A subcommand whose repeated flags count as given last.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& description);

/// A flag for a size in bytes (size_in_bytes).
void add_size_flag(CLI::App& command, const std::string& name, std::uint64_t& bytes, const std::string& description);
void add_output_flags(CLI::App& command, OutputOptions& options);
/// --timings, --timings-trace.
void add_timings_flags(CLI::App& command, OutputOptions& options);
void add_workspace(CLI::App& command, std::string& folder);
void add_python_flag(CLI::App& command, std::string& python);
void add_timeout_flag(CLI::App& command, double& seconds);
/// --timeout, --compile-timeout.
void add_time_limits(CLI::App& command, judge::Options& options);
/// --device, --gpu, --python.
void add_device_flags(CLI::App& command, judge::Options& options);
/// --arch.
void add_build_flags(CLI::App& command, judge::Options& options);
/// --task, --task-sha256, --require-sandbox.
void add_task_flags(CLI::App& command, AskOptions& options);
/// --session, --no-session.
void add_session_flag(CLI::App& command, AskOptions& options);
/// --policy.
void add_policy_flag(CLI::App& command, judge::Options& options);
/// --without.
void add_layer_flag(CLI::App& command, judge::Options& options);
enum class SeedFlag { yes, no };
/// --trials, --seed where it makes sense, --rtol, --atol, --contract, --keep-going, --call-timeout.
void add_check_flags(CLI::App& command, judge::Options& options, SeedFlag seed = SeedFlag::yes);
/// --baseline, --compile-mode, --require-speedup.
void add_speed_flags(CLI::App& command, judge::Options& options);
/// All of `run`.
void add_run_flags(CLI::App& command, AskOptions& options);

}  // namespace cuda_agent::cli
