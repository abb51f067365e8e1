// One worker process as the supervisor sees it: started in its sandbox, asked by messages, held by signals, explained
// when it dies. The protocol is that of src/worker/cuda_agent_worker.py.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "build/toolchain.hpp"
#include "cuda_agent/error.hpp"
#include "device/backend.hpp"
#include "exec/channel.hpp"
#include "exec/child.hpp"
#include "util/fd.hpp"
#include "util/files.hpp"
#include "util/time.hpp"

namespace cuda_agent::judge {

enum class Role { reference, candidate };

struct WorkerSetup {
  Role role = Role::reference;
  const build::Interpreter* interpreter = nullptr;
  std::filesystem::path module_folder;  ///< _cuda_agent and its Python side
  std::filesystem::path folder;         ///< model.py of the task, or the candidate's files; read-only inside
  std::filesystem::path cache;          ///< reference only: writable, keeps what torch.compile made
  std::string device = "cpu";
  int threads = 0;                                                    ///< 0 = all cores but one, four at the most
  bool tf32 = false;                                                  ///< single precision may be TF32 (CUDA)
  bool compiler = false;                                              ///< reference only: torch.compile will be used
  util::Deadline ask = util::Deadline::after(std::chrono::hours(1));  ///< when the whole ask has to end
  device::WorkerNeeds needs;                                          ///< of the device
};

class Worker final : public device::Peer {
 public:
  /// Starts the process and returns at once; `ready` waits for it. Errors: environment_error.
  static Result<std::unique_ptr<Worker>> start(const WorkerSetup& setup);

  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() override;

  /// Waits until torch is imported; gives the worker's facts, also when asked again. Errors: environment_error.
  Result<nlohmann::json> ready(util::Deadline deadline);
  /// When it was started and when it was ready, by its own account: seconds of the steady clock.
  std::pair<double, double> coming_up() const { return {m_start, m_facts ? m_facts->value("at", 0.0) : 0.0}; }
  /// Whether a message of its is there: `ready` or `collect` will not wait.
  bool has_spoken() const;
  /// Whether its device was started (the request "device"); for who asks to remember.
  bool device_started() const { return m_device_started; }
  void note_device_started() { m_device_started = true; }
  /// A worker that outlives an ask: when the one that has it now has to end.
  void serve(util::Deadline ask) { m_ask = ask; }
  /// Removed when the worker has ended.
  void own(util::TemporaryFolder folder) { m_own_folder = std::move(folder); }

  // A worker is stopped whenever it is not being asked: idle OpenMP threads spin for milliseconds after a parallel
  // region, and would take the processors from the other worker's timed call.

  /// One request and its answer. `during` says in errors what was going on ("constructing ModelNew"). Errors carry the
  /// fault of the role: a reference's failures are the task's, a candidate's its own.
  Result<nlohmann::json> request(const nlohmann::json& message, const std::vector<int>& descriptors,
                                 util::Deadline deadline, std::string_view during);

  /// Sends a request whose answer `collect` waits for: meanwhile other workers can be asked.
  Result<void> post(const nlohmann::json& message, const std::vector<int>& descriptors, util::Deadline deadline,
                    std::string_view during);
  Result<nlohmann::json> collect(util::Deadline deadline, std::string_view during);

  /// The answer to a timed call, already received by the backend, checked as `request` checks its own.
  Result<nlohmann::json> checked_reply(const std::string& text, std::string_view during);
  /// The error of a backend's call in this worker's words.
  Error explained(const Error& error, std::string_view during);

  Result<void> send(const std::string& text, util::Deadline deadline) override;
  Result<std::string> receive(util::Deadline deadline) override;
  void stop() override;
  void resume() override;

  Role role() const { return m_role; }
  /// Of its Python process, once it is ready; 0 before.
  pid_t pid() const { return m_pid; }
  /// The folder that it was started with, and the same as the process sees it.
  const std::filesystem::path& folder() const { return m_folder; }
  const std::filesystem::path& folder_inside() const { return m_folder_inside; }
  /// What it printed so far, raw and bounded.
  std::string printed();
  /// Ends its processes; what was printed stays.
  void end();
  /// From now on it is not stopped any more (--without stopping).
  void let_run() { m_let_run = true; }

 private:
  Worker(const WorkerSetup& setup, exec::Channel channel, std::unique_ptr<exec::Child> child,
         std::filesystem::path folder_inside);

  Role m_role;
  util::Deadline m_ask;
  util::TemporaryFolder m_own_folder;  ///< before the child: it goes last
  exec::Channel m_channel;
  std::unique_ptr<exec::Child> m_child;
  std::filesystem::path m_folder;
  std::filesystem::path m_folder_inside;
  std::optional<nlohmann::json> m_facts;  ///< said when it was ready
  void signal(int number);
  bool is_held() const;
  double m_start = util::steady_seconds();
  int m_pid = 0;
  bool m_let_run = false;
  bool m_device_started = false;
  bool m_stopped = false;
  bool m_awoke = false;  ///< it ran between stop and resume
  util::Fd m_process;    ///< pidfd of the Python process: its number may be somebody else's once it has ended
};

}  // namespace cuda_agent::judge
