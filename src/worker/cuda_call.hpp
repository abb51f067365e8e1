// One timed call on a GPU, and what capture needs of it. Also in modules that were built without CUDA.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <Python.h>

#include "arenas.hpp"
#include "call.hpp"
#include "capture.hpp"
#include "link.hpp"

namespace worker {

/// What an empty call is to do.
struct NullWork {
  int launches = 0;      ///< kernels that do nothing
  bool written = false;  ///< the null output is written anew for each call
  bool stored = true;    ///< false: it is not stored
};

class GpuCalls {
 public:
  virtual ~GpuCalls() = default;
  /// As worker::timed_call, with the supervisor's gate. 'R' says that the call may begin; the supervisor answers
  /// "open TICKET" or "closed TICKET". When the model has returned comes 'F' (or 'E', when it raised), answered by the
  /// nonce that the device has to write down when the model's kernels and then the copies of the results have ended.
  /// 'A' says that all of this is enqueued. Returns when the device is idle. `extra` comes before the
  /// model.
  virtual std::string timed_call(Link& link, const Arenas& arenas, PyObject* model,
                                 const std::vector<PyObject*>& arguments, const OutputRoom& output,
                                 const Node& null_output, const NullWork& extra) = 0;
  /// From now on calls are made on this stream: 0 is the legacy default stream, each other number one of its own that
  /// does not wait for it.
  virtual void use_stream(int number) = 0;
};

/// Takes over `fd`, the control page. Throws std::runtime_error in a module without CUDA.
std::unique_ptr<GpuCalls> make_gpu_calls(int fd);

/// Enqueues the copying of a tensor to memory of the GPU, on the stream of the call; with `raw` the `bytes` from its
/// first element on.
void store_on_gpu(const at::Tensor& tensor, bool raw, char* to, std::uint64_t bytes);

}  // namespace worker
