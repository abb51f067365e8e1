// What the judge asks of a device: memory to lend, copies, comparison, and one timed call. The CPU twin and CUDA stand
// behind this one interface; the judge knows neither.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda_agent/error.hpp"
#include "device/compare.hpp"
#include "device/tensor_layout.hpp"
#include "util/deadline.hpp"

namespace cuda_agent::device {

/// Memory that the supervisor allocated and may lend to one worker.
class Arena {
 public:
  virtual ~Arena() = default;
  virtual std::uint64_t size() const = 0;
  /// The descriptor to lend (owned by the arena); -1 for an arena that is never lent.
  virtual int descriptor() const = 0;
};

/// A part of an arena.
struct Span {
  Arena* arena = nullptr;
  std::uint64_t at = 0;
  std::uint64_t bytes = 0;
};

struct Copy {
  Span from;
  Span to;  ///< to.bytes == from.bytes
};

/// A worker as a backend sees it.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual Result<void> send(const std::string& text, util::Deadline deadline) = 0;
  virtual Result<std::string> receive(util::Deadline deadline) = 0;
  virtual void stop() = 0;    ///< SIGSTOP
  virtual void resume() = 0;  ///< SIGCONT
};

/// How the clock of a call runs.
enum class CallMode {
  open,        ///< a warm-up: nothing is held back and the time means little
  gated,       ///< from go, given when everything has been enqueued, to the end of the model's last kernel
  end_to_end,  ///< from before the inputs are written to the end of the model's last kernel
};

/// One timed call: the worker is armed by `request`, the inputs arrive while it is held, the clock runs from go to the
/// answer, and what it answered is moved out of its reach.
struct TimedCall {
  std::string request;       ///< JSON of the worker's op "call"
  std::vector<Copy> inputs;  ///< into the worker's slots
  Span output;               ///< where the worker stores its results
  Span kept;                 ///< where they are moved to; not lent to anybody; same size as output
  std::uint64_t poison = 0;  ///< seed of the values that lie in the output before the call
  CallMode mode = CallMode::open;
  Arena* control = nullptr;    ///< what `make_control` gave for this worker
  double arming_seconds = 60;  ///< gated: how long it may take until everything is enqueued
  util::Deadline deadline;
};

struct CallResult {
  double microseconds = 0;  ///< from go to answer, overhead (null) included
  double tail = 0;          ///< microseconds from the answer until its results were stored; 0 where not told apart
  double enqueued = 0;      ///< microseconds until the model had returned; 0 where not told apart
  bool armed = true;        ///< false: it could not be held until everything was enqueued, the time counts for nothing
  std::string refused;      ///< why it could not
  std::string reply;        ///< the worker's JSON, untrusted
};

/// What the sandbox of a worker needs for a device.
struct WorkerNeeds {
  std::vector<std::filesystem::path> device_nodes;
  std::map<std::string, std::string> environment;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;  ///< "cpu", "cuda"
  /// The verdict's speed.mode for arms that were timed this way.
  virtual std::string mode(CallMode mode) const = 0;
  /// "9.0"; empty where nothing is compiled for the device.
  virtual std::string architecture() const { return {}; }
  virtual WorkerNeeds worker_needs() const { return {}; }
  /// Names the device to every process of this machine, so that only one measures on it; empty: no lock is needed.
  virtual std::string lock_name() const { return {}; }
  /// Makes the supervisor's own context. Before this only facts can be asked for.
  virtual Result<void> open() { return {}; }
  /// Calls of an arm to make in mode `open` before others, and after these one more that does not count.
  virtual int open_calls() const { return 0; }
  /// What supervisor and worker share to start and end a timed call; null where the device needs no such thing. It is
  /// lent like an arena.
  virtual Result<std::unique_ptr<Arena>> make_control() { return std::unique_ptr<Arena>(); }

  /// How many bytes after the first of the two places at which inputs of `bytes` can lie the second one begins. They
  /// may overlap. A multiple of the page.
  virtual std::uint64_t second_place(std::uint64_t /*bytes*/) const { return 4096; }

  /// Memory that can be lent. Errors: environment_error that says how much was asked for.
  virtual Result<std::unique_ptr<Arena>> allocate(std::uint64_t bytes) = 0;
  /// Memory of the supervisor alone.
  virtual Result<std::unique_ptr<Arena>> allocate_private(std::uint64_t bytes) = 0;
  virtual Result<void> copy(const Copy& copy) = 0;
  /// Bytes of the device that nobody has taken; none where that is not the judge's concern (CPU).
  virtual std::optional<std::uint64_t> free_memory() const { return std::nullopt; }
  /// What the inputs and results of one timed call may take together.
  virtual std::uint64_t memory_for_calls() const { return std::uint64_t{256} << 20; }
  /// Whether the device still does what it is told. Errors: environment_error with the driver's words.
  virtual Result<void> still_works() { return {}; }
  /// Bytes equal?
  virtual Result<bool> equal(const Span& a, const Span& b) = 0;
  /// Layout offsets count from the span's first byte.
  virtual Result<CompareResult> compare(const Span& expected, const TensorLayout& expected_layout, const Span& got,
                                        const TensorLayout& got_layout, const CompareOptions& options) = 0;
  virtual Result<CallResult> call(Peer& peer, const TimedCall& call) = 0;
  /// Facts for the verdict's `environment`.
  virtual std::map<std::string, std::string> facts() const = 0;
};

}  // namespace cuda_agent::device
