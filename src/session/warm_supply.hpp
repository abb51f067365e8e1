// The workers that a session keeps: standbys that have imported torch and know of nothing yet, and reference workers
// that have their task. All of them are stopped whenever no ask uses them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "build/toolchain.hpp"
#include "judge/supply.hpp"

namespace cuda_agent::session {

struct SupplyLimits {
  int standbys = 1;                           ///< candidate workers to be
  int spares = 1;                             ///< reference workers to be, which have used torch.compile once
  int references = 4;                         ///< with a task; the one that was not used for longest goes first
  std::uint64_t idle_memory = 4'000'000'000;  ///< bytes of the host; above it reference workers go
  std::uint64_t idle_gpu_memory =
      8'000'000'000;  ///< bytes, those of standbys counted in; above it reference workers go
};

class WarmSupply final : public judge::Supply {
 public:
  /// Folders of workers are made below `folder`. Workers live as long as the thread that calls.
  WarmSupply(std::filesystem::path folder, SupplyLimits limits) : m_folder(std::move(folder)), m_limits(limits) {}

  Result<std::unique_ptr<judge::Worker>> worker(const judge::WorkerSetup& setup) override;
  std::unique_ptr<judge::LoadedReference> reference(const std::string& key) override;
  void keep(std::unique_ptr<judge::LoadedReference> reference) override;
  void expect(const judge::WorkerSetup& reference, const judge::WorkerSetup& candidate,
              const std::string& task) override;
  void settle(util::Deadline deadline) override;
  judge::RulesMemo* rules() override { return &m_rules; }
  Result<std::shared_ptr<device::Backend>> gpu(const std::string& name) override;

  /// How many asks are on their way or wait for their turn.
  void note_waiting(int asks) { m_waiting = asks; }
  /// Between asks: starts what was used up, takes note of what has come up. Does not wait.
  void tend();
  /// Whether something is still being started.
  bool busy() const;
  /// Gives everything back.
  void drop();
  nlohmann::json status() const;

 private:
  /// The setup with what it refers to.
  struct Kept {
    build::Interpreter interpreter;
    judge::WorkerSetup setup;
    std::string key;
  };
  struct Standby {
    std::string key;
    std::unique_ptr<judge::Worker> worker;
    bool ready = false;
    bool exercised = false;   ///< or being exercised
    bool exercising = false;  ///< an answer to "exercise" is still to be collected
  };

  Result<std::unique_ptr<judge::Worker>> start(const judge::WorkerSetup& setup) const;
  bool start_standby(const judge::WorkerSetup& setup);
  void start_standbys(const Kept* wanted, int most);
  void forget_wanted(const std::string& key);
  int standbys_of(const std::string& key) const;
  void note_ready(Standby& standby, util::Deadline deadline);
  static std::unique_ptr<Kept> remembered(const judge::WorkerSetup& setup);
  void exercise(Standby& standby);
  void collect(Standby& standby, util::Deadline deadline);
  void note_all();
  void drop_lost();
  void forget_lost();
  void limit_idle_memory();
  std::uint64_t gpu_memory() const;   ///< bytes, about
  std::uint64_t host_memory() const;  ///< bytes that only idle reference workers and standbys have

  std::filesystem::path m_folder;
  SupplyLimits m_limits;
  std::list<Standby> m_standbys;
  std::list<std::unique_ptr<judge::LoadedReference>> m_references;  ///< the one used last is first
  std::unique_ptr<Kept> m_wanted;                                   ///< what candidate standbys are started as
  std::unique_ptr<Kept> m_spare;                                    ///< what spare reference workers are started as
  std::shared_ptr<device::Backend> m_gpu;
  std::string m_gpu_name;
  judge::RulesMemo m_rules;
  bool m_compiled = false;  ///< some task was, by torch.compile: its caches are filled
  int m_waiting = 0;
  int m_reused = 0;
  int m_started = 0;
};

}  // namespace cuda_agent::session
