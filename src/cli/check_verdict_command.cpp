#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/outcome.hpp"
#include "cli/replay.hpp"
#include "cli/signing.hpp"
#include "judge/check_verdict.hpp"
#include "util/files.hpp"
#include "util/json.hpp"
#include "util/text.hpp"

namespace cuda_agent::cli {

namespace {

using nlohmann::json;

constexpr std::size_t largest_verdict = std::size_t{64} << 20;

struct ReadVerdict {
  json value;
  std::optional<std::string> ambiguity;
};

Result<ReadVerdict> read_verdict(const std::string& file) {
  auto const text = util::read_file(file, largest_verdict);
  if (!text) return fail(text.error());
  auto verdict = util::parse_json(*text, {.bytes = largest_verdict, .depth = 64});
  if (!verdict) {
    return fail(Outcome::usage_error,
                fmt::format("{} is no JSON: {}", util::escape_untrusted(file, 512), verdict.error().message),
                {"give the file that `cuda-agent grade` or `run --json` wrote"});
  }
  return ReadVerdict{std::move(*verdict), util::find_ambiguity(*text)};
}

/// Whose signature it is, in words.
std::string signer(const judge::VerdictCheck& check) {
  if (!check.is_signed) return "not signed: only what `grade` writes is";
  auto const own = util::SigningKey::open(signing_key_file());
  return fmt::format("signed by {}{}", check.public_key,
                     own && own->public_key() == check.public_key ? ", the key of this machine" : "");
}

json as_json(const CheckVerdictOptions& options, const judge::VerdictCheck& check,
             const std::vector<std::string>& replayed) {
  return {{"file", util::escape_untrusted(options.file)},
          {"valid", check.problems.empty()},
          {"signed", check.is_signed},
          {"public_key", check.is_signed ? json(check.public_key) : json(nullptr)},
          {"recomputed", check.recomputed},
          {"replayed", replayed},
          {"problems", check.problems}};
}

std::string as_text(const CheckVerdictOptions& options, const judge::VerdictCheck& check,
                    const std::vector<std::string>& replayed) {
  auto text = fmt::format("{}  {}\n  {}\n  {} figures computed again from the samples\n",
                          check.problems.empty() ? "HOLDS" : "DOES NOT HOLD", util::escape_untrusted(options.file, 512),
                          signer(check), check.recomputed);
  for (auto const& one : replayed) text += fmt::format("  replayed: {}\n", one);
  for (auto const& problem : check.problems) text += fmt::format("  problem  {}\n", problem);
  return text;
}

}  // namespace

int run_check_verdict(const CheckVerdictOptions& options, Console& console) {
  auto const failed = [&](const Error& error) {
    return print_failure(console, "check-verdict", error, options.output.json);
  };
  auto const read = read_verdict(options.file);
  if (!read) return failed(read.error());
  auto check = judge::check_verdict(read->value);
  if (!check) return failed(check.error());
  if (check->is_signed && read->ambiguity) {
    check->problems.push_back(fmt::format("signature: {}: it was not written so by whoever signed it",
                                          util::escape_untrusted(*read->ambiguity, 128)));
  }
  if (!options.key.empty() && options.key != check->public_key) {
    check->problems.push_back(check->is_signed ? fmt::format("signature: by {}, not by the key that was asked for",
                                                             util::escape_untrusted(check->public_key, 64))
                                               : "signature: there is none, and --key asks for one");
  }
  std::vector<std::string> replayed;
  if (!options.workspace.empty()) {
    auto again = replay(read->value, options, console);
    if (!again) return failed(again.error());
    replayed = std::move(again->done);
    check->problems.insert(check->problems.end(), again->problems.begin(), again->problems.end());
  }
  auto const text =
      options.output.json ? as_json(options, *check, replayed).dump() + "\n" : as_text(options, *check, replayed);
  auto const printed = print_result(console, text);
  return check->problems.empty() ? printed : exit_code(Outcome::policy_violation);
}

void setup_check_verdict(CLI::App& app, Action& action) {
  auto options = std::make_shared<CheckVerdictOptions>();
  auto* const command =
      add_command(app, "check-verdict", "Verify a verdict's signature and compute its figures again, on any machine");
  command->add_option("file", options->file, "The verdict, as JSON")->option_text("FILE")->required();
  command->add_option("--key", options->key, "The public key that must have signed it [default: any]")
      ->option_text("HEX");
  command
      ->add_option("--replay", options->workspace,
                   "Check the candidate of this workspace again on the same inputs: it must come out alike "
                   "[default: no replay]")
      ->option_text("WORKSPACE");
  command->add_option("--task", options->task, "Take the replay's model.py from this folder [default: the workspace's]")
      ->option_text("FOLDER");
  add_device_flags(*command, options->judge);
  add_time_limits(*command, options->judge);
  add_output_flags(*command, options->output);
  command->callback(
      [options, &action] { action = [options](Console& console) { return run_check_verdict(*options, console); }; });
}

}  // namespace cuda_agent::cli
