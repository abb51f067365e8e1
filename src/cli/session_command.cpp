// The resident session: started, asked and stopped by hand; `serve` is what the started process runs.
#include <chrono>
#include <memory>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "cli/app.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/outcome.hpp"
#include "session/client.hpp"
#include "session/server.hpp"
#include "util/files.hpp"
#include "util/text.hpp"

namespace cuda_agent::cli {
namespace {

using nlohmann::json;

util::Deadline soon() { return util::Deadline::after(std::chrono::seconds(5)); }

int answer_in_session(const session::Ask& ask, bool expecting, judge::Supply& supply, std::ostream& out,
                      std::ostream& err, util::Progress& progress) {
  Resident resident{supply, progress, ask.began, ask.since, ask.waited, ask.held, ask.compiled, expecting};
  Console console{out, err, ask.colour, false, ask.arguments, &resident};
  if (::chdir(ask.folder.c_str()) != 0) {
    return print_failure(console, ask.arguments.empty() ? "" : ask.arguments.front(),
                         {Outcome::environment_error, fmt::format("{} is not there any more", ask.folder)},
                         std::find(ask.arguments.begin(), ask.arguments.end(), "--json") != ask.arguments.end());
  }
  struct Leave {
    ~Leave() { (void)!::chdir("/"); }
  } const leave;  // the folder can be removed or unmounted
  return run_line(ask.arguments, console);
}

int serve(const SessionOptions& options, Console& console) {
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S %l: %v");
  spdlog::set_level(spdlog::level::info);
  spdlog::flush_on(spdlog::level::info);
  auto const place = session::own_place();
  if (!place) return print_failure(console, "session", place.error(), options.output.json);
  session::Answers const answers{
      .answer = [](const session::Ask& ask, judge::Supply& supply, std::ostream& out, std::ostream& err,
                   util::Progress& progress) { return answer_in_session(ask, false, supply, out, err, progress); },
      .expect =
          [](const session::Ask& ask, judge::Supply& supply) {
            std::ostringstream nowhere;
            util::SilentProgress silent;
            (void)answer_in_session(ask, true, supply, nowhere, nowhere, silent);
          }};
  session::ServerOptions const server{.idle_seconds = options.idle,
                                      .supply = {.standbys = options.standbys,
                                                 .spares = options.spares,
                                                 .idle_memory = options.idle_memory,
                                                 .idle_gpu_memory = options.idle_gpu_memory}};
  auto const served = session::serve(*place, server, answers);
  return served ? 0 : print_failure(console, "session", served.error(), options.output.json);
}

/// One line a session, or one object with all of them.
int report(const json& sessions, const SessionOptions& options, Console& console) {
  if (options.output.json) return print_result(console, json{{"sessions", sessions}}.dump(2) + "\n");
  std::string text = sessions.empty() ? "no session is there\n" : "";
  for (auto const& one : sessions) {
    auto const standbys = one.value("standbys", json::object());
    text += fmt::format("session {} · process {} · for {:.0f} s · {} asks answered, {} waiting\n", one.value("key", ""),
                        one.value("process", 0), one.value("seconds", 0.0), one.value("answered", 0),
                        one.value("waiting", 0));
    if (auto const running = one.value("running", ""); !running.empty()) {
      text += fmt::format("  judging  {}\n", running);
    }
    text += fmt::format("  workers  {} standbys ready, {} starting; {} tasks loaded\n", standbys.value("ready", 0),
                        standbys.value("starting", 0), one.value("references", json::array()).size());
    text += fmt::format("  memory   about {:.1f} GB held while idle\n", one.value("memory", 0.0) / 1e9);
    if (one.contains("gpu_memory")) {
      text += fmt::format("  GPU      about {:.1f} GB held while idle\n", one.value("gpu_memory", 0.0) / 1e9);
    }
    text += fmt::format("  log      {}\n", one.value("log", ""));
  }
  return print_result(console, text);
}

int start(const SessionOptions& options, const session::Place& place, Console& console) {
  if (auto const there = session::Connection::open(place)) {
    return print_result(console, "the session is there already\n");
  }
  std::vector<std::string> const command = {util::own_executable().string(),
                                            "session",
                                            "serve",
                                            "--standbys",
                                            std::to_string(options.standbys),
                                            "--idle",
                                            fmt::format("{}", options.idle),
                                            "--spares",
                                            std::to_string(options.spares),
                                            "--idle-memory",
                                            fmt::format("{}B", options.idle_memory),
                                            "--idle-gpu-memory",
                                            fmt::format("{}B", options.idle_gpu_memory)};
  auto const started = session::Connection::start(place, command, util::Deadline::after(std::chrono::seconds(10)));
  if (!started) return print_failure(console, "session", started.error(), options.output.json);
  return print_result(console, "started\n");
}

int tell_all(const std::string& op, const SessionOptions& options, Console& console) {
  json answers = json::array();
  for (auto const& place : session::all_places()) {
    auto connection = session::Connection::open(place);
    if (!connection) continue;
    auto answer = connection->request(op, soon());
    if (answer) answers.push_back(std::move(*answer));
  }
  if (op == "status") return report(answers, options, console);
  if (options.output.json) return print_result(console, json{{"stopped", answers.size()}}.dump() + "\n");
  return print_result(console, answers.empty()
                                   ? "no session is there\n"
                                   : fmt::format("told {} to stop\n", answers.size() == 1 ? "it" : "all of them"));
}

int show_log(const session::Place& place, const SessionOptions& options, Console& console) {
  constexpr std::size_t most = std::size_t{4} << 20;
  auto const text = util::read_file(place.log(), most);
  if (!text) return print_failure(console, "session", text.error(), options.output.json);
  return print_result(console, util::escape_untrusted(*text, most));
}

}  // namespace

void setup_session(CLI::App& app, Action& action) {
  auto options = std::make_shared<SessionOptions>();
  auto* const command = add_command(app, "session", "The resident process that answers asks in seconds");
  command->add_option("action", options->action, "start, status, stop or log")
      ->required()
      ->check(one_of({"start", "status", "stop", "log", "serve"}))
      ->option_text("ACTION");
  command->add_option("--standbys", options->standbys, "start: workers for candidates that are kept ready [default: 1]")
      ->transform(whole_number_between(0, 16))
      ->option_text("N");
  command->add_option("--idle", options->idle, "start: seconds without an ask after which it leaves [default: 600]")
      ->check(number_above(0, 1e6))
      ->option_text("SECONDS");
  command
      ->add_option("--spares", options->spares,
                   "start: workers for new tasks that are kept ready, with torch.compile warm [default: 1]")
      ->transform(whole_number_between(0, 16))
      ->option_text("N");
  add_size_flag(*command, "--idle-memory", options->idle_memory,
                "start: memory that its workers may hold while idle [default: 4GB]");
  add_size_flag(*command, "--idle-gpu-memory", options->idle_gpu_memory,
                "start: GPU memory it may hold while idle, tasks included [default: 8GB]");
  add_output_flags(*command, options->output);
  command->callback(
      [options, &action] { action = [options](Console& console) { return run_session(*options, console); }; });
}

int run_session(const SessionOptions& options, Console& console) {
  if (options.action == "serve") return serve(options, console);
  if (options.action == "status" || options.action == "stop") return tell_all(options.action, options, console);
  auto const place = session::own_place();
  if (!place) return print_failure(console, "session", place.error(), options.output.json);
  return options.action == "start" ? start(options, *place, console) : show_log(*place, options, console);
}

}  // namespace cuda_agent::cli
