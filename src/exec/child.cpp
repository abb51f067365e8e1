#include "exec/child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

#include <fcntl.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/capture.hpp"
#include "exec/child_setup.hpp"
#include "exec/descendants.hpp"
#include "exec/exit_status.hpp"
#include "util/fd.hpp"
#include "util/interrupt.hpp"
#include "util/text.hpp"

namespace cuda_agent::exec {

namespace {

// How long a killed process may take to be gone: a driver may have much to tear down.
constexpr std::chrono::seconds c_kill_patience{30};

struct Pipe {
  util::Fd read;
  util::Fd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(Outcome::environment_error,
                fmt::format("cannot make a pipe: {}", std::generic_category().message(errno)),
                {"raise the limit on open files (ulimit -n)"});
  }
  return Pipe{util::Fd(ends[0]), util::Fd(ends[1])};
}

Result<Pipe> make_output_pipe() {
  auto pipe = make_pipe();
  if (!pipe) return pipe;
  ::fcntl(pipe->read.get(), F_SETFL, O_NONBLOCK);
  // Room for a child that prints while nobody drains. May fail where a user's pipes are limited; no harm.
  ::fcntl(pipe->write.get(), F_SETPIPE_SZ, 1 << 20);
  return pipe;
}

std::vector<char*> c_array(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (auto& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

class ChildProcess final : public Child {
 public:
  // `bubblewrap_report`: the read end of --json-status-fd, none when not sandboxed.
  ChildProcess(pid_t pid, Capture capture, util::Fd bubblewrap_report, std::string name)
      : m_pid(pid),
        m_pidfd(open_pidfd(pid)),
        m_capture(std::move(capture)),
        m_bubblewrap_report(std::move(bubblewrap_report)),
        m_sandboxed(static_cast<bool>(m_bubblewrap_report)),
        m_name(std::move(name)) {}
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() override { end(); }

  pid_t pid() const override { return m_pid; }
  void kill() override { end(); }
  void drain() override { m_capture.drain(); }
  int output_fd() const override { return m_capture.fd(); }
  int exit_fd() const override { return m_pidfd.get(); }
  const Captured& output() const override { return m_capture.captured(); }

  std::optional<ExitStatus> poll() override {
    if (!m_status) {
      m_capture.drain();
      siginfo_t info{};
      // WNOWAIT: while it is a zombie, its number names its group and session and nothing else.
      int const result = ::waitid(P_PID, static_cast<id_t>(m_pid), &info, WEXITED | WNOHANG | WNOWAIT);
      if (result == 0 && info.si_pid == m_pid) finish(info);
    }
    return m_status;
  }

  Result<ExitStatus> wait(util::Deadline deadline) override {
    while (true) {
      if (auto const status = poll()) {
        if (m_never_ran) return fail(setup_error());
        return *status;
      }
      if (util::interrupted()) return fail(util::interrupted_error());
      if (deadline.expired()) {
        return fail(Outcome::timeout, fmt::format("{} did not end in time", m_name));
      }
      wait_for_news(deadline);
    }
  }

 private:
  void wait_for_news(util::Deadline deadline) const {
    std::array<pollfd, 3> news{
        {{m_pidfd.get(), POLLIN, 0}, {m_capture.fd(), POLLIN, 0}, {util::interrupt_fd(), POLLIN, 0}}};
    int const patience = deadline.remaining_ms();
    ::poll(news.data(), news.size(), m_pidfd ? patience : std::min(patience, 20));
  }

  void end() {
    if (m_status) return;
    kill_tree(m_pid);
    if (wait_for_end(m_pid, util::Deadline::after(c_kill_patience))) poll();
    // Else the kernel holds it. It stays ours, and the destructor must not wait for ever.
    if (!m_status) m_status = ExitStatus{0, SIGKILL};
  }

  void finish(const siginfo_t& info) {
    kill_tree(m_pid);
    sweep_orphans(m_pid, util::Deadline::after(c_kill_patience));
    m_capture.drain();
    m_status = exit_status(info, m_sandboxed);
    m_never_ran = m_sandboxed && info.si_code == CLD_EXITED && info.si_status != 0 && !bubblewrap_saw_it_end();
    LivingChildren::instance().remove(m_pid);
    ::waitpid(m_pid, nullptr, 0);
  }

  // bubblewrap reports an exit code for a command that it did execute, and only for that.
  bool bubblewrap_saw_it_end() const {
    std::array<char, 4096> buffer{};
    ssize_t const got = ::read(m_bubblewrap_report.get(), buffer.data(), buffer.size());
    std::string_view const report(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return report.find("\"exit-code\"") != std::string_view::npos;
  }

  Error setup_error() const {
    return {Outcome::environment_error,
            fmt::format("the sandbox for {} could not be set up: {}", m_name,
                        util::escape_untrusted(util::trim(m_capture.captured().text()), 400)),
            {"run `cuda-agent doctor`; CUDA_AGENT_SANDBOX=none runs without a sandbox"}};
  }

  pid_t m_pid;
  util::Fd m_pidfd;
  Capture m_capture;
  util::Fd m_bubblewrap_report;
  bool m_sandboxed;
  bool m_never_ran = false;
  std::string m_name;
  std::optional<ExitStatus> m_status;
};

std::string name_of(const Command& command) { return std::filesystem::path(command.argv.front()).filename().string(); }

Result<void> check(const Command& command) {
  if (command.argv.empty() || !std::filesystem::path(command.argv.front()).is_absolute()) {
    return fail(Outcome::internal_error, "a command to start must be named by an absolute path");
  }
  if (!std::all_of(command.inherit.begin(), command.inherit.end(), [](auto const& p) { return p.second >= 3; })) {
    return fail(Outcome::internal_error, "an inherited descriptor must be placed at 3 or above");
  }
  return {};
}

Error start_error(const Command& command, const SetupFailure& failure) {
  std::string const why = std::generic_category().message(failure.error);
  switch (failure.stage) {
    case SetupStage::inherit:
      return {Outcome::internal_error, fmt::format("cannot hand descriptors to {}: {}", name_of(command), why)};
    case SetupStage::limits:
      return {Outcome::environment_error, fmt::format("cannot set resource limits for {}: {}", name_of(command), why)};
    case SetupStage::enter_folder:
      return {Outcome::environment_error,
              fmt::format("cannot start {} in {}: {}", command.argv.front(), command.cwd.string(), why)};
    case SetupStage::confine:
      return {Outcome::environment_error,
              fmt::format("{} cannot be confined by landlock, or keeps capabilities: {}", name_of(command), why),
              {"CUDA_AGENT_SANDBOX=none runs without"}};
    case SetupStage::execute:
      break;
  }
  return {Outcome::environment_error,
          fmt::format("cannot start {}: {}", command.argv.front(), why),
          {"check that the file exists, is executable and fits this machine"}};
}

// What the sandbox adds: bubblewrap in front, and a pipe for its report.
struct Launch {
  std::vector<std::string> argv;
  std::vector<std::pair<int, int>> inherit;
  Pipe report;
};

Result<Launch> prepare(const Command& command) {
  Launch launch{command.argv, command.inherit, {}};
  if (!command.sandbox) return launch;

  auto const& support = probe_sandbox();
  if (!support.bubblewrap) {
    return fail(Outcome::environment_error, fmt::format("no sandbox for {}: {}", name_of(command), support.reason));
  }
  for (auto const& bind : command.sandbox->binds) {
    std::error_code error;
    if (bind.optional || std::filesystem::exists(bind.source, error)) continue;
    return fail(Outcome::environment_error, fmt::format("cannot show {} to {} in its sandbox: it does not exist",
                                                        bind.source.string(), name_of(command)));
  }
  auto report = make_pipe();
  if (!report) return fail(report.error());
  ::fcntl(report->read.get(), F_SETFL, O_NONBLOCK);
  launch.report = std::move(*report);
  int number = 3;
  for (auto const& [source, target] : command.inherit) number = std::max(number, target + 1);
  launch.inherit.emplace_back(launch.report.write.get(), number);
  launch.argv = bubblewrap_argv(support, *command.sandbox, command.cwd);
  launch.argv.insert(launch.argv.begin() + 1, {"--json-status-fd", std::to_string(number)});
  launch.argv.insert(launch.argv.end(), command.argv.begin(), command.argv.end());
  return launch;
}

// -1 and errno when there can be no more processes.
pid_t fork_command(ChildSetup& setup) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  auto const guard = LivingChildren::instance().lock();
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t const pid = ::fork();
  if (pid == 0) become_command(setup);
  int const error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid > 0) LivingChildren::instance().add(pid);
  errno = error;
  return pid;
}

std::optional<SetupFailure> read_failure(const util::Fd& pipe) {
  SetupFailure failure;
  ssize_t got = 0;
  do {
    got = ::read(pipe.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof failure) return std::nullopt;
  return failure;
}

}  // namespace

Result<std::unique_ptr<Child>> spawn(const Command& command) {
  if (auto const good = check(command); !good) return fail(good.error());
  become_subreaper();

  auto launch = prepare(command);
  if (!launch) return fail(launch.error());
  auto output = make_output_pipe();
  if (!output) return fail(output.error());
  auto failures = make_pipe();
  if (!failures) return fail(failures.error());
  util::Fd const nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing) {
    return fail(Outcome::environment_error,
                fmt::format("cannot open /dev/null: {}", std::generic_category().message(errno)));
  }

  util::Fd rules;
  if (command.confinement && !command.sandbox) {
    auto made = landlock_rules(*command.confinement);
    if (!made) return fail(made.error());
    rules = std::move(*made);
  }

  std::vector<std::string> env;
  for (auto const& [name, value] : command.env) env.push_back(fmt::format("{}={}", name, value));
  auto const argv = c_array(launch->argv);
  auto const envp = c_array(env);
  std::string const cwd = command.sandbox || command.cwd.empty() ? "/" : command.cwd.string();

  ChildSetup setup;
  setup.argv = argv.data();
  setup.envp = envp.data();
  setup.cwd = cwd.c_str();
  setup.input = nothing.get();
  setup.output = output->write.get();
  setup.failure_pipe = failures->write.get();
  setup.inherit = launch->inherit;
  setup.limits = command.limits;
  setup.landlock = rules.get();
  setup.no_capabilities = command.no_capabilities && !command.sandbox;
  // bubblewrap sets it itself, and where it is installed setuid it could not work with it.
  setup.no_new_privs = !command.sandbox;
  setup.parent = ::getpid();

  pid_t const pid = fork_command(setup);
  if (pid < 0) {
    return fail(Outcome::environment_error,
                fmt::format("cannot start {}: {}", command.argv.front(), std::generic_category().message(errno)),
                {"the limit on processes (ulimit -u) or the memory may be used up"});
  }
  auto child =
      std::make_unique<ChildProcess>(pid, Capture(std::move(output->read), command.capture_head, command.capture_tail),
                                     std::move(launch->report.read), name_of(command));
  output->write.reset();
  launch->report.write.reset();
  failures->write.reset();
  if (auto const failure = read_failure(failures->read)) return fail(start_error(command, *failure));
  return child;
}

Result<Completed> run(const Command& command, util::Deadline deadline) {
  auto const start = util::Clock::now();
  auto const seconds = [start] { return std::chrono::duration<double>(util::Clock::now() - start).count(); };
  auto child = spawn(command);
  if (!child) return fail(child.error());
  auto const status = (*child)->wait(deadline);
  if (!status) {
    (*child)->kill();
    Error error = status.error();
    if (error.outcome == Outcome::timeout) {
      error.message = fmt::format("{} did not end within {:.1f} s and was killed", name_of(command), seconds());
      error.detail = util::escape_untrusted((*child)->output().text());
    }
    return fail(std::move(error));
  }
  return Completed{*status, (*child)->output().text(), seconds()};
}

}  // namespace cuda_agent::exec
