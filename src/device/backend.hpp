// What the judge asks of a device: memory to lend, copies, comparison, and one timed call. The CPU twin and CUDA stand
// behind this one interface; the judge knows neither.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
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

/// One timed call: the worker is armed by `request`, the inputs arrive while it is held, the clock runs from go to the
/// answer, and what it answered is moved out of its reach.
struct TimedCall {
  std::string request;       ///< JSON of the worker's op "call"
  std::vector<Copy> inputs;  ///< into the worker's slots
  Span output;               ///< where the worker stores its results
  Span kept;                 ///< where they are moved to; not lent to anybody; same size as output
  std::uint64_t poison = 0;  ///< seed of the values that lie in the output before the call
  util::Deadline deadline;
};

struct CallResult {
  double microseconds = 0;  ///< from go to answer, overhead (null) included
  std::string reply;        ///< the worker's JSON, untrusted
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;  ///< "cpu", "cuda"
  virtual std::string mode() const = 0;  ///< the verdict's speed.mode

  /// Memory that can be lent. Errors: environment_error that says how much was asked for.
  virtual Result<std::unique_ptr<Arena>> allocate(std::uint64_t bytes) = 0;
  /// Memory of the supervisor alone.
  virtual Result<std::unique_ptr<Arena>> allocate_private(std::uint64_t bytes) = 0;
  virtual Result<void> copy(const Copy& copy) = 0;
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
