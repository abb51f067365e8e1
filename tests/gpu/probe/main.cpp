// What a process can do to a timed call from inside, tried many times against the supervisor's own code.
//   gate_probe [--tries N] [SCENARIO ...]
// One JSON line a scenario: how the calls ended, what they were charged, how many kernels got past the gate. Where a
// scenario forges something about honest work, the same is done without the forging in turn with it, in one process.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "device/cuda/cuda_backend.hpp"
#include "exec/channel.hpp"
#include "exec/child.hpp"
#include "exec/seal.hpp"
#include "judge/profile.hpp"
#include "judge/statistics.hpp"
#include "util/environment.hpp"
#include "util/files.hpp"
#include "util/random.hpp"
#include "worker.hpp"

extern char** environ;

namespace {

using namespace cuda_agent;  // NOLINT(google-build-using-namespace): a program of its own

constexpr int channel_number = 3;
constexpr int warm_ups = 4;
constexpr std::uint64_t input_bytes = probe::input_bytes;
constexpr std::uint64_t output_bytes = probe::output_bytes;

[[noreturn]] void give_up(const Error& error) {
  std::cerr << "gate_probe: " << error.message << ' ' << error.detail << '\n';
  std::exit(3);
}

template <typename Value>
Value need(Result<Value> result) {
  if (!result) give_up(result.error());
  if constexpr (!std::is_void_v<Value>) return std::move(*result);
}

class ProbePeer final : public device::Peer {
 public:
  ProbePeer(exec::Channel channel, exec::Child& child) : m_channel(std::move(channel)), m_child(child) {}
  Result<void> send(const std::string& text, util::Deadline deadline) override {
    return m_channel.send(text, {}, deadline, m_child);
  }
  Result<std::string> receive(util::Deadline deadline) override {
    auto message = m_channel.receive(std::size_t{1} << 16U, deadline, m_child);
    if (!message) return fail(message.error());
    return std::move(message->text);
  }
  void stop() override {}
  void resume() override {}
  exec::Channel& channel() { return m_channel; }

 private:
  exec::Channel m_channel;
  exec::Child& m_child;
};

struct Tally {
  std::vector<double> spans;  ///< of the calls that count
  std::vector<double> tails;
  int refused = 0;  ///< the gate did not hold them
  int caught = 0;   ///< the call ended in a policy violation
  int wrong = 0;    ///< the result is not that of the inputs
  int escaped = 0;  ///< calls in which something ran before go
  int tries = 0;
  std::vector<double> honest_spans;  ///< of the honest calls in between
  std::vector<double> honest_tails;
};

bool forges_about_work(const std::string& name) {
  return name.starts_with("done") || name.starts_with("beat") || name == "armed_early";
}

class Probe {
 public:
  explicit Probe(device::Backend& backend) : m_backend(backend) {
    m_private_input = need(backend.allocate_private(input_bytes));
    m_expected = need(backend.allocate_private(output_bytes));
    m_kept = need(backend.allocate_private(output_bytes));
  }

  Tally run(const std::string& name, int tries) {
    auto control = need(m_backend.make_control());
    auto input = need(m_backend.allocate(input_bytes));
    auto output = need(m_backend.allocate(output_bytes));
    auto [channel, theirs] = need(exec::Channel::make());
    exec::Command command;
    command.argv = {util::own_executable().string(), "--worker"};
    for (char** one = environ; *one != nullptr; ++one) {
      std::string const text = *one;
      if (auto const at = text.find('='); at != std::string::npos)
        command.env[text.substr(0, at)] = text.substr(at + 1);
    }
    command.env["CUDA_SCALE_LAUNCH_QUEUES"] = "4x";
    command.inherit = {{theirs.get(), channel_number}};
    auto child = need(exec::spawn(command));
    theirs.reset();
    ProbePeer peer(std::move(channel), *child);
    auto const filter = need(exec::seal_filter(exec::Seal::no_new_processes));
    need(peer.channel().send(name + " " + filter, {control->descriptor(), input->descriptor(), output->descriptor()},
                             within(60), *child));
    if (auto const ready = peer.receive(within(60)); !ready || *ready != "ready") {
      std::cerr << name << ": " << child->output().text() << '\n';
      std::exit(3);
    }
    Tally tally;
    int const turns = forges_about_work(name) ? 2 : 1;
    for (int i = 0; i < turns * (warm_ups + tries); ++i) {
      bool const honest = i % turns == 1;
      bool const warm_up = i < turns * warm_ups;
      device::TimedCall const call{.request = honest ? "honest" : "call",
                                   .inputs = {{{m_private_input.get(), 0, input_bytes}, {input.get(), 0, input_bytes}}},
                                   .output = {output.get(), 0, output_bytes},
                                   .kept = {m_kept.get(), 0, output_bytes},
                                   .poison = util::random_u64(),
                                   .mode = warm_up ? device::CallMode::open : device::CallMode::gated,
                                   .control = control.get(),
                                   .arming_seconds = 2,
                                   .deadline = within(30)};
      auto const made = m_backend.call(peer, call);
      if (warm_up) {
        if (!made) give_up(made.error());
        continue;
      }
      if (honest) {
        if (!made) give_up(made.error());
        if (!made->armed) continue;
        tally.honest_spans.push_back(made->microseconds);
        tally.honest_tails.push_back(made->tail);
        continue;
      }
      ++tally.tries;
      if (!made && made.error().outcome != Outcome::policy_violation) give_up(made.error());
      if (!made) {
        ++tally.caught;
        continue;
      }
      tally.escaped += made->reply == "0" ? 0 : 1;
      tally.refused += made->armed ? 0 : 1;
      if (!made->armed) continue;
      tally.spans.push_back(made->microseconds);
      tally.tails.push_back(made->tail);
      if (name == "increment") {  // honest: what the result of these inputs is
        need(m_backend.copy({{m_kept.get(), 0, output_bytes}, {m_expected.get(), 0, output_bytes}}));
        m_has_expected = true;
      } else if (name == "no_gate" && m_has_expected) {
        tally.wrong +=
            need(m_backend.equal({m_kept.get(), 0, output_bytes}, {m_expected.get(), 0, output_bytes})) ? 0 : 1;
      }
    }
    (void)peer.send("end", within(5));
    (void)child->wait(within(10));
    return tally;
  }

  static util::Deadline within(double seconds) { return util::Deadline::after(std::chrono::duration<double>(seconds)); }

 private:
  device::Backend& m_backend;
  std::unique_ptr<device::Arena> m_private_input;
  std::unique_ptr<device::Arena> m_expected;
  std::unique_ptr<device::Arena> m_kept;
  bool m_has_expected = false;
};

nlohmann::json quantiles(const std::vector<double>& values) {
  return {{"p10", judge::quantile(values, 0.1)},
          {"median", judge::median(values)},
          {"p90", judge::quantile(values, 0.9)},
          {"least", judge::quantile(values, 0)}};
}

std::vector<double> charged(const std::vector<double>& spans, const std::vector<double>& tails,
                            const judge::NullCall& null) {
  std::vector<double> values;
  for (std::size_t i = 0; i < spans.size(); ++i) values.push_back(judge::without_null(spans[i], tails[i], null, 1));
  return values;
}

nlohmann::json summary(const std::string& name, const Tally& tally, const judge::NullCall& null) {
  nlohmann::json row = {
      {"scenario", name},     {"tries", tally.tries},     {"refused", tally.refused},     {"caught", tally.caught},
      {"wrong", tally.wrong}, {"escaped", tally.escaped}, {"counted", tally.spans.size()}};
  if (!tally.honest_spans.empty()) row["honest"] = quantiles(charged(tally.honest_spans, tally.honest_tails, null));
  if (tally.spans.empty()) return row;
  row["span"] = quantiles(tally.spans);
  row["tail"] = quantiles(tally.tails);
  row["charged"] = quantiles(charged(tally.spans, tally.tails, null));
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "--worker") return probe::work_for_the_supervisor(channel_number);
  int tries = 100;
  if (arguments.size() > 1 && arguments[0] == "--tries") {
    tries = std::stoi(arguments[1]);
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  if (arguments.empty()) {
    arguments = {"work",
                 "nonblocking",
                 "priority",
                 "per_thread",
                 "graph",
                 "one_thread_gate",
                 "second_context",
                 "second_context_sealed",
                 "child_process_sealed",
                 "done1_early",
                 "done2_early",
                 "done_by_kernel",
                 "done_guessed",
                 "armed_early",
                 "beat_by_kernel",
                 "beat_by_thread",
                 "increment",
                 "no_gate"};
  }
  auto backend = need(device::make_cuda_backend(""));
  need(backend->open());
  Probe probe(*backend);
  judge::NullCall null;
  for (char const* const kind : {"one_thread_null", "null", "null_written"}) {
    Tally const tally = probe.run(kind, tries);
    if (tally.spans.empty()) give_up({Outcome::environment_error, "no empty call counted"});
    if (kind != std::string("null_written")) null.microseconds = judge::median(tally.spans);
    null.tail = judge::median(tally.tails);
    std::cout << summary(kind, tally, null) << std::endl;
  }
  for (std::string const& name : arguments) std::cout << summary(name, probe.run(name, tries), null) << std::endl;
  return 0;
}
