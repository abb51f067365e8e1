#include "session/warm_supply.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include "device/cuda/cuda_backend.hpp"
#include "util/files.hpp"

namespace cuda_agent::session {
namespace {

/// What a process holds of a GPU with nothing but its context and torch's own (H200, facts of 2026-11).
constexpr std::uint64_t context_bytes = 600'000'000;

}  // namespace

using judge::LoadedReference;
using judge::Role;
using judge::Worker;
using judge::WorkerSetup;

Result<std::unique_ptr<Worker>> WarmSupply::start(const WorkerSetup& setup) const {
  auto folder = util::TemporaryFolder::make(m_folder, setup.role == Role::reference ? "task-" : "candidate-");
  if (!folder) return fail(folder.error());
  WorkerSetup own = setup;
  own.folder = folder->path();
  auto worker = Worker::start(own);
  if (worker) (*worker)->own(std::move(*folder));
  return worker;
}

Result<std::unique_ptr<Worker>> WarmSupply::worker(const WorkerSetup& setup) {
  if (setup.role == Role::candidate) m_wanted = remembered(setup);
  forget_lost();
  note_all();
  std::string const key = key_of(setup);
  auto found = std::find_if(m_standbys.begin(), m_standbys.end(), [&](const Standby& one) { return one.key == key; });
  if (found != m_standbys.end() && found->exercising) {
    collect(*found, setup.ask.earlier(util::Deadline::after(std::chrono::seconds(60))));
    if (found->worker == nullptr) found = m_standbys.end();
    drop_lost();
  }
  if (found == m_standbys.end()) {
    ++m_started;
    return start(setup);
  }
  auto worker = std::move(found->worker);
  m_standbys.erase(found);
  return worker;
}

std::unique_ptr<WarmSupply::Kept> WarmSupply::remembered(const WorkerSetup& setup) {
  auto kept = std::make_unique<Kept>(Kept{*setup.interpreter, setup, key_of(setup)});
  kept->setup.interpreter = &kept->interpreter;
  return kept;
}

/// One that says something without being asked has ended, or is about to.
void WarmSupply::forget_lost() {
  std::erase_if(m_references, [](auto const& one) { return one->worker->has_spoken(); });
  std::erase_if(m_standbys,
                [](const Standby& one) { return one.ready && !one.exercising && one.worker->has_spoken(); });
}

void WarmSupply::drop_lost() {
  std::erase_if(m_standbys, [](const Standby& one) { return one.worker == nullptr; });
}

/// Takes note of what has come up. Does not wait.
void WarmSupply::note_all() {
  for (Standby& one : m_standbys) {
    if (!one.worker->has_spoken()) continue;
    if (!one.ready) {
      note_ready(one, util::Deadline::after(std::chrono::seconds(1)));
    } else if (one.exercising) {
      collect(one, util::Deadline::after(std::chrono::seconds(1)));
    }
  }
  drop_lost();
}

/// The first use of torch.compile in a process takes seconds, whatever is compiled.
void WarmSupply::exercise(Standby& standby) {
  auto const posted = standby.worker->post({{"op", "exercise"}}, {}, util::Deadline::after(std::chrono::seconds(1)),
                                           "preparing torch.compile");
  standby.exercised = true;
  standby.exercising = posted.has_value();
}

void WarmSupply::collect(Standby& standby, util::Deadline deadline) {
  standby.worker->resume();
  auto const done = standby.worker->collect(deadline, "preparing torch.compile");
  standby.exercising = false;
  if (done) return;
  spdlog::warn("a spare reference worker is of no use: {}", done.error().message);
  forget_wanted(standby.key);
  standby.worker.reset();
}

/// Until the next ask wants one: the next one of the kind would fare no better.
void WarmSupply::forget_wanted(const std::string& key) {
  if (m_wanted && m_wanted->key == key) m_wanted.reset();
  if (m_spare && m_spare->key == key) m_spare.reset();
}

std::unique_ptr<LoadedReference> WarmSupply::reference(const std::string& key) {
  forget_lost();
  auto const found =
      std::find_if(m_references.begin(), m_references.end(), [&](auto const& one) { return one->key == key; });
  if (found == m_references.end()) return nullptr;
  auto reference = std::move(*found);
  m_references.erase(found);
  ++m_reused;
  return reference;
}

void WarmSupply::keep(std::unique_ptr<LoadedReference> reference) {
  // What torch's allocator keeps for later is given back, the task's weights stay. A model that remembers its calls
  // would give the next candidate other results than a new one.
  auto const limit = util::Deadline::after(std::chrono::seconds(5));
  auto const left = reference->worker->request({{"op", "idle"}}, {}, limit, "going idle");
  if (!left || !left->value("as_constructed", false)) return;
  m_compiled = m_compiled || reference->compiled;
  reference->gpu_bytes = left->value("held", std::uint64_t{0}) + context_bytes;
  m_references.push_front(std::move(reference));
  while (static_cast<int>(m_references.size()) > m_limits.references) m_references.pop_back();
  limit_idle_memory();  // here, where the ask still has the GPU's lock: what ends disturbs whoever measures
}

void WarmSupply::expect(const WorkerSetup& reference, const WorkerSetup& candidate, const std::string& task) {
  m_wanted = remembered(candidate);
  m_spare = reference.compiler ? remembered(reference) : nullptr;
  constexpr int most = 3;
  int const wanted = std::clamp(m_waiting, 1, most);
  start_standbys(m_wanted.get(), wanted);
  bool const known =
      std::any_of(m_references.begin(), m_references.end(), [&](auto const& one) { return one->task == task; });
  if (!known && standbys_of(key_of(reference)) == 0) (void)start_standby(reference);
}

int WarmSupply::standbys_of(const std::string& key) const {
  return static_cast<int>(
      std::count_if(m_standbys.begin(), m_standbys.end(), [&](const Standby& one) { return one.key == key; }));
}

bool WarmSupply::start_standby(const WorkerSetup& setup) {
  auto key = key_of(setup);
  auto worker = start(setup);
  if (!worker) {
    spdlog::warn("no standby: {}", worker.error().message);
    forget_wanted(key);
    return false;
  }
  m_standbys.push_back({std::move(key), std::move(*worker), false, false, false});
  return true;
}

void WarmSupply::start_standbys(const Kept* wanted, int most) {
  if (wanted == nullptr) return;
  Kept const own(*wanted);  // what is wanted is forgotten when it cannot be started
  while (standbys_of(own.key) < most && start_standby(own.setup)) {
  }
}

void WarmSupply::note_ready(Standby& standby, util::Deadline deadline) {
  if (standby.ready) return;
  if (auto const facts = standby.worker->ready(deadline); !facts) {
    spdlog::warn("a standby did not come up: {}", facts.error().message);
    forget_wanted(standby.key);
    standby.worker.reset();
    return;
  }
  standby.ready = true;
}

void WarmSupply::tend() {
  forget_lost();
  note_all();
  if (!m_wanted) return;
  // Those of other setups have not been asked for lately.
  while (static_cast<int>(m_standbys.size()) > std::max(m_limits.standbys, m_waiting) + m_limits.spares + 1) {
    m_standbys.pop_front();
  }
  start_standbys(m_wanted.get(), m_limits.standbys);
  // A spare comes last: the next ask is of a known task, as a rule. Before any task was compiled the caches are empty,
  // and to use torch.compile would take minutes, which an ask would have to wait for.
  if (!m_spare || !m_compiled || m_waiting > 0 || busy()) return;
  start_standbys(m_spare.get(), m_limits.spares);
  for (Standby& one : m_standbys) {
    if (m_spare && one.key == m_spare->key && one.ready && !one.exercised) exercise(one);
  }
}

std::uint64_t WarmSupply::gpu_memory() const {
  if (m_gpu == nullptr) return 0;
  std::uint64_t held = context_bytes * (1 + m_standbys.size());
  for (auto const& one : m_references) held += one->gpu_bytes;
  return held;
}

/// Pages of files, torch's libraries among them, are shared by all.
std::uint64_t own_memory(const Worker& worker) {
  std::ifstream status(fmt::format("/proc/{}/status", worker.pid()));
  std::uint64_t bytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("RssAnon:") && !line.starts_with("RssShmem:")) continue;
    constexpr std::uint64_t kibi = 1024;
    bytes += std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10) * kibi;
  }
  return bytes;
}

std::uint64_t WarmSupply::host_memory() const {
  std::uint64_t bytes = 0;
  for (auto const& one : m_references) bytes += own_memory(*one->worker);
  for (auto const& one : m_standbys) bytes += own_memory(*one.worker);
  return bytes;
}

/// Idle workers hold what others may need.
void WarmSupply::limit_idle_memory() {
  while (gpu_memory() > m_limits.idle_gpu_memory && !m_references.empty()) m_references.pop_back();
  while (host_memory() > m_limits.idle_memory && !m_references.empty()) m_references.pop_back();
}

bool WarmSupply::busy() const {
  return std::any_of(m_standbys.begin(), m_standbys.end(), [](const Standby& one) { return !one.ready; });
}

/// A spare that compiles is waited for as well: stopped it would go on holding Inductor's locks, which the reference
/// worker may need, and its compiler would run on.
void WarmSupply::settle(util::Deadline deadline) {
  for (Standby& one : m_standbys) {
    auto const limit = deadline.earlier(util::Deadline::after(std::chrono::seconds(60)));
    note_ready(one, limit);
    if (one.worker != nullptr && one.exercising) collect(one, limit);
  }
  drop_lost();
}

Result<std::shared_ptr<device::Backend>> WarmSupply::gpu(const std::string& name) {
  if (m_gpu != nullptr && m_gpu_name == name) return m_gpu;
  if (m_gpu != nullptr) drop();
  auto backend = device::make_cuda_backend(name);
  if (!backend) return fail(backend.error());
  m_gpu = std::move(*backend);
  m_gpu_name = name;
  return m_gpu;
}

void WarmSupply::drop() {
  m_references.clear();
  m_standbys.clear();
  m_wanted.reset();
  m_spare.reset();
  m_gpu.reset();
}

nlohmann::json WarmSupply::status() const {
  nlohmann::json references = nlohmann::json::array();
  for (auto const& one : m_references) references.push_back(one->task);
  auto const ready = std::count_if(m_standbys.begin(), m_standbys.end(), [](const Standby& one) { return one.ready; });
  auto const spares = std::count_if(m_standbys.begin(), m_standbys.end(),
                                    [](const Standby& one) { return one.exercised && !one.exercising; });
  nlohmann::json status = {{"standbys", {{"ready", ready}, {"starting", std::ssize(m_standbys) - ready}}},
                           {"spares", spares},
                           {"references", references},
                           {"references_reused", m_reused},
                           {"workers_started", m_started},
                           {"memory", host_memory()}};
  if (m_gpu != nullptr) status["gpu_memory"] = gpu_memory();
  return status;
}

}  // namespace cuda_agent::session
