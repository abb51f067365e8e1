#include "judge/worker.hpp"

#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec/descendants.hpp"
#include "judge/worker_command.hpp"
#include "util/json.hpp"
#include "util/text.hpp"

namespace cuda_agent::judge {
namespace {

constexpr std::size_t message_limit = std::size_t{8} << 20;

bool is_candidate(Role role) { return role == Role::candidate; }
const char* name_of(Role role) { return is_candidate(role) ? "the candidate's worker" : "the reference worker"; }

std::string text_of(const nlohmann::json& object, const char* key) {
  auto const found = object.find(key);
  return found != object.end() && found->is_string() ? util::escape_untrusted(found->get<std::string>()) : "";
}

/// A worker's {"ok": false, "error": …} as an error of ours.
Error reported(Role role, const nlohmann::json& reply, std::string_view during) {
  nlohmann::json const empty = nlohmann::json::object();
  auto const found = reply.find("error");
  nlohmann::json const& said = found != reply.end() && found->is_object() ? *found : empty;
  std::string const kind = text_of(said, "kind");
  std::string const message = text_of(said, "message");
  std::string const file = text_of(said, "file");
  auto const line = said.find("line");
  std::string place;
  if (!file.empty() && line != said.end() && line->is_number_integer()) {
    place = fmt::format(" at {}:{}", file, line->get<long long>());
  }
  bool const plain = kind != "exception" && !kind.empty();
  std::string const sentence =
      plain ? message : fmt::format("{} raised {}{}: {}", during, text_of(said, "type"), place, message);
  Outcome outcome = Outcome::task_error;
  if (is_candidate(role)) outcome = plain ? Outcome::wrong : Outcome::crash;
  // What the task's own model does not fit into is too small.
  if (!is_candidate(role) && text_of(said, "type") == "OutOfMemoryError") outcome = Outcome::environment_error;
  Error error(outcome, sentence);
  if (std::string const hint = text_of(said, "hint"); !hint.empty()) error.hints.push_back(hint);
  if (is_candidate(role) && text_of(said, "type") == "ModuleNotFoundError" &&
      message.find("'model'") != std::string::npos) {
    error.hints.push_back("model.py is not there for a candidate: put what ModelNew needs into model_new.py");
  }
  if (!plain) error.detail = text_of(said, "traceback");
  return error;
}

}  // namespace

Result<std::unique_ptr<Worker>> Worker::start(const WorkerSetup& setup) {
  auto pair = exec::Channel::make();
  if (!pair) return fail(pair.error());
  WorkerCommand made = worker_command(setup, exec::probe_sandbox());
  made.command.inherit = {{pair->second.get(), worker_channel_fd}};
  auto child = exec::spawn(made.command);
  if (!child) return fail(child.error());
  return std::unique_ptr<Worker>(
      new Worker(setup, std::move(pair->first), std::move(*child), std::move(made.folder_inside)));
}

Worker::Worker(const WorkerSetup& setup, exec::Channel channel, std::unique_ptr<exec::Child> child,
               std::filesystem::path folder_inside)
    : m_role(setup.role),
      m_ask(setup.ask),
      m_channel(std::move(channel)),
      m_child(std::move(child)),
      m_folder(setup.folder),
      m_folder_inside(std::move(folder_inside)) {}

Worker::~Worker() { m_child->kill(); }

void Worker::end() { m_child->kill(); }

Result<nlohmann::json> Worker::ready(util::Deadline deadline) {
  if (m_facts) return *m_facts;
  auto message = m_channel.receive(message_limit, deadline, *m_child);
  if (!message) {
    if (message.error().outcome == Outcome::interrupted) return fail(message.error());
    if (message.error().outcome == Outcome::timeout) {
      Error late(Outcome::timeout, fmt::format("the time limit passed while {} was starting", name_of(m_role)),
                 {"a slow or busy machine needs more time: --timeout SECONDS"});
      late.fault = Fault::environment;
      return fail(std::move(late));
    }
    return fail(Outcome::environment_error,
                fmt::format("{} did not come up: {}", name_of(m_role), message.error().message),
                {"`cuda-agent doctor` shows what this machine lacks"}, util::escape_untrusted(printed()));
  }
  m_pid = message->sender;
  m_process = util::Fd(static_cast<int>(::syscall(SYS_pidfd_open, m_pid, 0)));
  stop();
  auto facts = util::parse_json(message->text);
  if (!facts) return fail(Outcome::environment_error, fmt::format("{} spoke no JSON", name_of(m_role)));
  m_facts = std::move(*facts);
  return *m_facts;
}

Result<void> Worker::send(const std::string& text, util::Deadline deadline) {
  return m_channel.send(text, {}, deadline, *m_child);
}

Result<std::string> Worker::receive(util::Deadline deadline) {
  auto message = m_channel.receive(message_limit, deadline, *m_child);
  if (!message) return fail(message.error());
  return std::move(message->text);
}

Result<nlohmann::json> Worker::request(const nlohmann::json& message, const std::vector<int>& descriptors,
                                       util::Deadline deadline, std::string_view during) {
  if (auto posted = post(message, descriptors, deadline, during); !posted) return fail(posted.error());
  return collect(deadline, during);
}

Result<void> Worker::post(const nlohmann::json& message, const std::vector<int>& descriptors, util::Deadline deadline,
                          std::string_view during) {
  resume();
  auto sent = m_channel.send(message.dump(), descriptors, deadline, *m_child);
  if (sent) return {};
  stop();
  return fail(explained(sent.error(), during));
}

Result<nlohmann::json> Worker::collect(util::Deadline deadline, std::string_view during) {
  auto reply = receive(deadline);
  stop();
  if (!reply) return fail(explained(reply.error(), during));
  return checked_reply(*reply, during);
}

Result<nlohmann::json> Worker::checked_reply(const std::string& text, std::string_view during) {
  auto reply = util::parse_json(text, {.bytes = message_limit, .depth = 80});
  if (!reply || !reply->is_object() || !reply->contains("ok") || !(*reply)["ok"].is_boolean()) {
    Error error(Outcome::crash,
                fmt::format("{} gave an answer that is not part of the protocol while {}", name_of(m_role), during));
    if (!is_candidate(m_role)) error = Error(Outcome::internal_error, error.message);
    return fail(std::move(error));
  }
  if (m_awoke) {
    return fail(Outcome::policy_violation,
                fmt::format("{} was running while it should have been stopped, before {}", name_of(m_role), during),
                {"leave timers and signals alone: a candidate runs only while it is called"});
  }
  if (!(*reply)["ok"].get<bool>()) return fail(reported(m_role, *reply, during));
  return std::move(*reply);
}

Error Worker::explained(const Error& error, std::string_view during) {
  Error said = error;
  if (error.outcome == Outcome::timeout && m_ask.expired()) {
    // Not the limit of this step: what came before it may have taken the time.
    said.message = fmt::format("the time for the whole ask ran out while {}", during);
    said.fault = Fault::environment;
    said.hints = {"give it more time: --timeout SECONDS"};
  } else if (error.outcome == Outcome::timeout) {
    said.message = is_candidate(m_role) ? fmt::format("time limit reached while {}", during)
                                        : fmt::format("the task's own model reached its time limit while {}", during);
    said.fault = is_candidate(m_role) ? Fault::candidate : Fault::task;
    said.hints = is_candidate(m_role)
                     ? std::vector<std::string>{"look for an endless loop or a wait that never ends",
                                                "a slow machine needs more than the default: --call-timeout SECONDS"}
                     : std::vector<std::string>{"raise --timeout, or make the task smaller"};
  } else if (error.outcome == Outcome::crash) {
    said.message = fmt::format("{} while {}", error.message, during);
    if (!is_candidate(m_role)) {
      said.outcome = Outcome::task_error;
      said.fault = Fault::task;
      said.message = fmt::format("the reference worker ended ({}) while {}", error.message, during);
    }
    said.detail = util::escape_untrusted(printed(), 4096);
  }
  return said;
}

bool Worker::has_spoken() const {
  pollfd channel{m_channel.fd(), POLLIN, 0};
  return ::poll(&channel, 1, 0) > 0;
}

void Worker::signal(int number) {
  if (m_process) (void)::syscall(SYS_pidfd_send_signal, m_process.get(), number, nullptr, 0);
}

void Worker::stop() {
  if (m_let_run) return;
  signal(SIGSTOP);
  m_stopped = true;
}

void Worker::resume() {
  if (std::exchange(m_stopped, false) && is_candidate(m_role) && !is_held()) m_awoke = true;
  signal(SIGCONT);
}

/// A stop takes effect once every thread has been scheduled, which takes its time on a busy machine: what counts is
/// that it does.
bool Worker::is_held() const {
  constexpr int tries = 2000;
  for (int i = 0; i < tries; ++i) {
    char const state = exec::state_of(m_pid);
    if (state == 'T' || state == 'Z' || state == 'X') return true;  // stopped, or it has ended
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

std::string Worker::printed() {
  m_child->drain();
  return m_child->output().text();
}

}  // namespace cuda_agent::judge
