// Where an ask gets its workers and its GPU from, and what becomes of them afterwards. Without a session both are made
// for the ask and end with it; a session (src/session) keeps what can be used again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "cuda_agent/error.hpp"
#include "device/backend.hpp"
#include "judge/lint.hpp"
#include "judge/policy_stage.hpp"
#include "judge/worker.hpp"

namespace cuda_agent::judge {

/// A reference worker with its task: Model constructed, looked at (lint), perhaps compiled.
struct LoadedReference {
  std::string key;   ///< of everything that it was made of
  std::string task;  ///< SHA-256 of its model.py
  std::unique_ptr<Worker> worker;
  nlohmann::json description = nlohmann::json::object();  ///< its own, of the task
  TaskFacts facts;                                        ///< what the look at it found
  bool compiled = false;                                  ///< torch.compile was used on its model
  std::uint64_t seed = 0;                                 ///< of the constructors
  std::uint64_t input_bytes = 0;
  std::uint64_t result_bytes = 0;
  std::uint64_t model_bytes = 0;  ///< most that its process had in use of a GPU beside the inputs
  std::uint64_t gpu_bytes = 0;    ///< about what its process holds while it is idle
};

/// What workers have to agree in for one to stand in for another.
std::string key_of(const WorkerSetup& setup);

class Supply {
 public:
  virtual ~Supply() = default;

  /// A worker that has not heard of a task or candidate yet, in a folder of its own (Worker::folder); `setup.folder` is
  /// not looked at. It may have been started long ago; `ready` is still to be awaited. Errors: environment_error.
  virtual Result<std::unique_ptr<Worker>> worker(const WorkerSetup& setup) = 0;

  /// A kept reference worker; null when there is none of that key.
  virtual std::unique_ptr<LoadedReference> reference(const std::string& key) = 0;
  /// What an ask that went well has no more use for. Nothing of the ask is lent to it any more.
  virtual void keep(std::unique_ptr<LoadedReference> reference) = 0;

  /// An ask of these workers is on its way; `task`: the SHA-256 of its model.py. What is not there can be started.
  virtual void expect(const WorkerSetup& reference, const WorkerSetup& candidate, const std::string& task) = 0;
  /// Returns once nothing of its own runs: calls are timed from now on.
  virtual void settle(util::Deadline deadline) = 0;

  /// What the rules have said before; null: nothing is remembered.
  virtual RulesMemo* rules() { return nullptr; }

  /// The GPU's backend, as device::make_cuda_backend gives it.
  virtual Result<std::shared_ptr<device::Backend>> gpu(const std::string& name) = 0;
};

/// For one ask: everything new, folders of workers below `scratch`.
class FreshSupply final : public Supply {
 public:
  explicit FreshSupply(std::filesystem::path scratch) : m_scratch(std::move(scratch)) {}
  Result<std::unique_ptr<Worker>> worker(const WorkerSetup& setup) override;
  std::unique_ptr<LoadedReference> reference(const std::string& /*key*/) override { return nullptr; }
  void keep(std::unique_ptr<LoadedReference> /*reference*/) override {}
  void expect(const WorkerSetup& /*reference*/, const WorkerSetup& /*candidate*/,
              const std::string& /*task*/) override {}
  void settle(util::Deadline /*deadline*/) override {}
  Result<std::shared_ptr<device::Backend>> gpu(const std::string& name) override;

 private:
  std::filesystem::path m_scratch;
};

}  // namespace cuda_agent::judge
