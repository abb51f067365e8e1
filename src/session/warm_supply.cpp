#include "session/warm_supply.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

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
  if (setup.role == Role::candidate) remember(setup);
  forget_lost();
  for (Standby& one : m_standbys) {
    if (!one.ready && one.worker->has_spoken()) note_ready(one, util::Deadline::after(std::chrono::seconds(1)));
  }
  std::erase_if(m_standbys, [](const Standby& one) { return one.worker == nullptr; });
  std::string const key = key_of(setup);
  auto const found =
      std::find_if(m_standbys.begin(), m_standbys.end(), [&](const Standby& one) { return one.key == key; });
  if (found == m_standbys.end()) {
    ++m_started;
    return start(setup);
  }
  auto worker = std::move(found->worker);
  m_standbys.erase(found);
  return worker;
}

void WarmSupply::remember(const WorkerSetup& setup) {
  m_wanted = std::make_unique<Kept>(Kept{*setup.interpreter, setup, key_of(setup)});
  m_wanted->setup.interpreter = &m_wanted->interpreter;
}

/// One that says something without being asked has ended, or is about to.
void WarmSupply::forget_lost() {
  std::erase_if(m_references, [](auto const& one) { return one->worker->has_spoken(); });
  std::erase_if(m_standbys, [](const Standby& one) { return one.ready && one.worker->has_spoken(); });
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
  reference->gpu_bytes = left->value("held", std::uint64_t{0}) + context_bytes;
  m_references.push_front(std::move(reference));
  while (static_cast<int>(m_references.size()) > m_limits.references) m_references.pop_back();
  limit_idle_memory();  // here, where the ask still has the GPU's lock: what ends disturbs whoever measures
}

void WarmSupply::expect(const WorkerSetup& reference, const WorkerSetup& candidate, const std::string& task) {
  remember(candidate);
  constexpr int most = 3;
  int const wanted = std::clamp(m_waiting, 1, most);
  for (int have = standbys_of(key_of(candidate)); have < wanted; ++have) start_standby(candidate);
  bool const known =
      std::any_of(m_references.begin(), m_references.end(), [&](auto const& one) { return one->task == task; });
  if (!known && standbys_of(key_of(reference)) == 0) start_standby(reference);
}

int WarmSupply::standbys_of(const std::string& key) const {
  return static_cast<int>(
      std::count_if(m_standbys.begin(), m_standbys.end(), [&](const Standby& one) { return one.key == key; }));
}

void WarmSupply::start_standby(const WorkerSetup& setup) {
  auto worker = start(setup);
  if (!worker) {
    spdlog::warn("no standby: {}", worker.error().message);
    m_wanted.reset();
    return;
  }
  m_standbys.push_back({key_of(setup), std::move(*worker), false});
}

void WarmSupply::note_ready(Standby& standby, util::Deadline deadline) {
  if (standby.ready) return;
  if (auto const facts = standby.worker->ready(deadline); !facts) {
    spdlog::warn("a standby did not come up: {}", facts.error().message);
    standby.worker.reset();
    m_wanted.reset();  // until the next ask wants one: the next would not either
    return;
  }
  standby.ready = true;
}

void WarmSupply::tend() {
  forget_lost();
  for (Standby& one : m_standbys) {
    if (!one.ready && one.worker->has_spoken()) note_ready(one, util::Deadline::after(std::chrono::seconds(1)));
  }
  std::erase_if(m_standbys, [](const Standby& one) { return one.worker == nullptr; });
  if (m_wanted) {
    // Those of other setups have not been asked for lately.
    while (static_cast<int>(m_standbys.size()) > std::max(m_limits.standbys, m_waiting) + 1) m_standbys.pop_front();
    while (m_wanted && standbys_of(m_wanted->key) < m_limits.standbys) {
      Kept const wanted = *m_wanted;
      start_standby(wanted.setup);
    }
  }
}

std::uint64_t WarmSupply::gpu_memory() const {
  if (m_gpu == nullptr) return 0;
  std::uint64_t held = context_bytes * (1 + m_standbys.size());
  for (auto const& one : m_references) held += one->gpu_bytes;
  return held;
}

/// On a GPU idle workers hold what others may need.
void WarmSupply::limit_idle_memory() {
  while (gpu_memory() > m_limits.idle_gpu_memory && !m_references.empty()) m_references.pop_back();
}

bool WarmSupply::busy() const {
  return std::any_of(m_standbys.begin(), m_standbys.end(), [](const Standby& one) { return !one.ready; });
}

void WarmSupply::settle(util::Deadline deadline) {
  for (Standby& one : m_standbys) {
    note_ready(one, deadline.earlier(util::Deadline::after(std::chrono::seconds(60))));
  }
  std::erase_if(m_standbys, [](const Standby& one) { return one.worker == nullptr; });
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
  m_gpu.reset();
}

nlohmann::json WarmSupply::status() const {
  nlohmann::json references = nlohmann::json::array();
  for (auto const& one : m_references) references.push_back(one->task);
  auto const ready = std::count_if(m_standbys.begin(), m_standbys.end(), [](const Standby& one) { return one.ready; });
  nlohmann::json status = {{"standbys", {{"ready", ready}, {"starting", std::ssize(m_standbys) - ready}}},
                           {"references", references},
                           {"references_reused", m_reused},
                           {"workers_started", m_started}};
  if (m_gpu != nullptr) status["gpu_memory"] = gpu_memory();
  return status;
}

}  // namespace cuda_agent::session
