#include "cuda_call.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <stdexcept>

#include <pybind11/pybind11.h>

#include "cuda_gate.hpp"

#ifdef CUDA_AGENT_TORCH_CUDA
#include <unistd.h>

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace worker {

#ifdef CUDA_AGENT_TORCH_CUDA

namespace {

/// "open TICKET" or "closed TICKET".
struct Start {
  bool closed = false;
  std::uint64_t ticket = 0;
};

std::uint64_t hexadecimal(const std::string& text) { return std::stoull(text, nullptr, 16); }

Start wait_for_start(Link& link) {
  auto const [text, fds] = link.receive();
  std::size_t const space = text.find(' ');
  if (!fds.empty() || space == std::string::npos) {
    throw std::runtime_error("expected the start of a timed call, got something else");
  }
  return {text.compare(0, space, "closed") == 0, hexadecimal(text.substr(space + 1))};
}

/// The stream on which calls are made, whatever a model has made the current one.
std::optional<c10::cuda::CUDAStream>& call_stream() {
  static std::optional<c10::cuda::CUDAStream> stream;
  return stream;
}

cudaStream_t stream_of_calls() { return call_stream().value_or(c10::cuda::getDefaultCUDAStream()).stream(); }

c10::cuda::CUDAStream new_stream() {
  cudaStream_t stream = nullptr;
  C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return c10::cuda::getStreamFromExternal(stream, c10::cuda::current_device());
}

class CudaCalls final : public GpuCalls {
 public:
  explicit CudaCalls(int fd) : m_gate(fd) {}

  void use_stream(int number) override {
    if (number == 0) {
      call_stream().reset();
      m_gate.use_stream(nullptr);
      return;
    }
    auto const found = m_streams.find(number);
    c10::cuda::CUDAStream const stream =
        found != m_streams.end() ? found->second : m_streams.emplace(number, new_stream()).first->second;
    call_stream() = stream;
    m_gate.use_stream(stream.stream());
  }

  std::string timed_call(Link& link, const Arenas& arenas, PyObject* model, const std::vector<PyObject*>& arguments,
                         const OutputRoom& output, const Node& null_output, const NullWork& extra) override {
    std::optional<c10::cuda::CUDAStreamGuard> guard;
    if (call_stream()) {
      guard.emplace(*call_stream());
    }
    std::size_t const calls = arguments.size();
    char* const room = output.room == 0
                           ? nullptr
                           : static_cast<char*>(arenas.address(output.arena, output.at,
                                                               output.room * static_cast<std::uint64_t>(calls)));
    bool const null = model == Py_None;
    std::vector<Node> results(calls);
    std::uint64_t needed = 0;
    bool fits = true;

    link.send_mark('R');
    Start const start = wait_for_start(link);
    m_gate.reset_cache();
    if (start.closed) {
      m_gate.close(start.ticket);
    }
    std::exception_ptr failure;
    char* waiting = nullptr;  // where the last result goes, after the first answer
    try {
      m_gate.nothing(extra.launches);
      for (std::size_t k = 0; k < calls && fits; ++k) {
        if (!null) {
          auto value = pybind11::reinterpret_steal<pybind11::object>(call_model(model, arguments[k]));
          if (!value) {
            throw pybind11::error_already_set();
          }
          results[k] = capture(value.ptr());
        }
        if (null && extra.written) {
          write(null_output);
        }
        if (null && !extra.stored) {
          continue;
        }
        Node const& result = null ? null_output : results[k];
        std::uint64_t const bytes = bytes_needed(result);
        needed = std::max(needed, bytes);
        fits = bytes <= output.room;
        if (fits && bytes > 0) {
          waiting = room + k * output.room;
          if (k + 1 < calls) {
            store(result, waiting, true);
            waiting = nullptr;
            release(results[k]);
          }
        }
      }
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) {
      link.send_mark('E');
      (void)cudaDeviceSynchronize();
      std::rethrow_exception(failure);
    }
    link.send_mark('F');
    std::uint64_t const nonce = hexadecimal(link.receive().first);
    m_gate.answer_first(nonce);
    if (waiting != nullptr) {
      store(null ? null_output : results.back(), waiting, true);
    }
    m_gate.answer_second(nonce);
    link.send_mark('A');
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    for (Node& result : results) {
      release(result);
    }
    return described_results(results, null ? &null_output : nullptr, fits, needed);
  }

 private:
  static void write(const Node& node) {
    if (node.tensor.defined() && node.bytes > 0) {
      C10_CUDA_CHECK(cudaMemsetAsync(node.tensor.mutable_data_ptr(), 1, node.bytes, stream_of_calls()));
    }
    for (Node const& item : node.items) {
      write(item);
    }
  }

  CudaGate m_gate;
  std::map<int, c10::cuda::CUDAStream> m_streams;
};

}  // namespace

std::unique_ptr<GpuCalls> make_gpu_calls(int fd) { return std::make_unique<CudaCalls>(fd); }

void store_on_gpu(const at::Tensor& tensor, bool raw, char* to, std::uint64_t bytes) {
  auto const stream = call_stream().value_or(c10::cuda::getDefaultCUDAStream());
  if (raw || tensor.is_contiguous()) {
    C10_CUDA_CHECK(cudaMemcpyAsync(to, tensor.const_data_ptr(), bytes, cudaMemcpyDefault, stream));
    return;
  }
  c10::cuda::CUDAStreamGuard const guard(stream);
  c10::NoGradGuard const no_grad;
  at::from_blob(to, tensor.sizes(), at::TensorOptions().dtype(tensor.scalar_type()).device(at::kCUDA, 0))
      .copy_(tensor, true);
}

#else

std::unique_ptr<GpuCalls> make_gpu_calls(int /*fd*/) {
  throw std::runtime_error("this worker module was built without CUDA");
}

void store_on_gpu(const at::Tensor& /*tensor*/, bool /*raw*/, char* /*to*/, std::uint64_t /*bytes*/) {
  throw std::runtime_error("this worker module was built without CUDA");
}

#endif

}  // namespace worker
