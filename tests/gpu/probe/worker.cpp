#include "worker.hpp"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attacks.hpp"
#include "worker/control_page.hpp"
#include "worker/cuda_gate.hpp"
#include "worker/link.hpp"
#include "worker/seal.hpp"

namespace probe {
namespace {

constexpr long long work_cycles = 1'000'000;
constexpr auto hold = std::chrono::milliseconds(2);  ///< so long a stray kernel has the time to get past the gate

void check(cudaError_t status, const char* doing) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(doing) + ": " + cudaGetErrorString(status));
}

void pass_time(std::chrono::nanoseconds span) {
  auto const end = std::chrono::steady_clock::now() + span;
  while (std::chrono::steady_clock::now() < end) {
  }
}

template <typename Call>
Call driver_call(const char* name) {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  void* const call = library == nullptr ? nullptr : ::dlsym(library, name);
  if (call == nullptr) throw std::runtime_error(std::string("no ") + name);
  return reinterpret_cast<Call>(call);
}

/// What a scenario works with.
struct Room {
  worker::Link& link;
  worker::CudaGate& gate;
  worker::ControlPage* page = nullptr;       ///< as this process sees it
  worker::ControlPage* on_device = nullptr;  ///< as its kernels do
  std::uint32_t* escaped = nullptr;          ///< a word of host memory
  std::uint32_t* escaped_on_device = nullptr;
  std::uint32_t* input = nullptr;
  std::uint32_t* output = nullptr;
  std::uint32_t* own = nullptr;  ///< device memory of this process, as large as the output
};

/// One timed call, in the steps of src/worker/cuda_call.cpp.
class Call {
 public:
  Call(Room& room, std::uint64_t ticket, bool closed) : m_room(room), m_ticket(ticket), m_closed(closed) {}

  void close() {
    if (m_closed) m_room.gate.close(m_ticket);
  }
  /// Says that the model has returned, and learns the nonce.
  void returned() {
    m_room.link.send_mark('F');
    m_nonce = std::stoull(m_room.link.receive().first, nullptr, 16);
  }
  void armed() { m_room.link.send_mark('A'); }
  void first() { m_room.gate.answer_first(m_nonce); }
  void second() { m_room.gate.answer_second(m_nonce); }
  void store() {
    check(cudaMemcpyAsync(m_room.output, m_room.own, output_bytes, cudaMemcpyDeviceToDevice, nullptr), "storing");
  }
  /// What follows an honest model.
  void honest_end() {
    returned();
    first();
    store();
    second();
    armed();
  }
  std::uint64_t ticket() const { return m_ticket; }
  std::uint64_t nonce() const { return m_nonce; }

 private:
  Room& m_room;
  std::uint64_t m_ticket;
  std::uint64_t m_nonce = 0;
  bool m_closed;
};

using Scenario = std::function<void(Room&, Call&)>;

void do_work(Room& room) { launch_work(work_cycles, room.own, output_bytes / 4, 7, nullptr); }

/// A kernel on `stream`, while the gate is closed and, after this, while the supervisor copies.
Scenario stray_on(cudaStream_t stream) {
  return [stream](Room& room, Call& call) {
    call.close();
    launch_stray(&room.on_device->go, room.escaped_on_device, stream);
    pass_time(hold);
    call.honest_end();
  };
}

cudaStream_t new_stream(unsigned flags, bool urgent) {
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, flags, urgent ? greatest : least), "making a stream");
  return stream;
}

Scenario stray_in_graph(Room& room) {
  cudaStream_t const stream = new_stream(cudaStreamNonBlocking, false);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
  launch_stray(&room.on_device->go, room.escaped_on_device, stream);
  check(cudaStreamEndCapture(stream, &graph), "capturing");
  check(cudaGraphInstantiate(&ready, graph, 0), "making a graph");
  check(cudaGraphLaunch(ready, stream), "launching a graph");
  check(cudaDeviceSynchronize(), "launching a graph");
  return [stream, ready](Room& /*room*/, Call& call) {
    call.close();
    check(cudaGraphLaunch(ready, stream), "launching a graph");
    pass_time(hold);
    call.honest_end();
  };
}

/// What a context of its own could do: nothing of it is there once the process is sealed.
Scenario second_context(bool sealed, const std::string& filter) {
  auto const create = driver_call<CUresult (*)(CUcontext*, void*, unsigned, CUdevice)>("cuCtxCreate_v4");
  auto const destroy = driver_call<decltype(&cuCtxDestroy)>("cuCtxDestroy_v2");
  if (sealed) {
    auto const report = worker::seal(filter, true);
    if (!report.devices) throw std::runtime_error("not sealed: " + (report.why.empty() ? "" : report.why.front()));
  }
  return [create, destroy](Room& room, Call& call) {
    CUcontext context = nullptr;
    if (create(&context, nullptr, 0, 0) == CUDA_SUCCESS) {
      ++*room.escaped;
      destroy(context);
    }
    call.close();
    call.honest_end();
  };
}

Scenario child_process(const std::string& filter) {
  auto const report = worker::seal(filter, true);
  if (!report.filter) throw std::runtime_error("not sealed: " + (report.why.empty() ? "" : report.why.front()));
  return [](Room& room, Call& call) {
    call.close();
    pid_t const child = ::fork();
    if (child == 0) ::_exit(0);
    if (child > 0) ++*room.escaped;
    call.honest_end();
  };
}

/// A thread that writes to the page as the gate does, for as long as it lives.
class Forger {
 public:
  Forger(worker::ControlPage& page, std::uint64_t ticket)
      : m_thread([this, &page, ticket] {
          std::atomic_ref<std::uint64_t> const resident(page.resident);
          std::atomic_ref<std::uint64_t> const beat(page.beat);
          while (!m_end) {
            resident.store(ticket);
            beat.fetch_add(1);
          }
        }) {}
  Forger(const Forger&) = delete;
  Forger& operator=(const Forger&) = delete;
  ~Forger() {
    m_end = true;
    m_thread.join();
  }

 private:
  std::atomic<bool> m_end = false;
  std::thread m_thread;
};

/// Honest work while kernels on another stream write to two places of host memory, again and again.
Scenario written_meanwhile(const std::function<std::pair<std::uint64_t*, std::uint64_t*>(Room&)>& places) {
  cudaStream_t const stream = new_stream(cudaStreamNonBlocking, true);
  return [stream, places](Room& room, Call& call) {
    call.close();
    auto const [first, second] = places(room);
    launch_write(first, call.ticket(), 1000, stream);
    launch_write(second, call.ticket(), 1000, stream);
    do_work(room);
    call.honest_end();
  };
}

/// What `name` is compared with: the same without the forging. Kernels beside the work take the multiprocessor that it
/// would have had, and it runs on another one, which is nearer to the memory or farther from it: 1 % of a single block.
Scenario honest_counterpart(const std::string& name) {
  if (name == "done_guessed") {
    return written_meanwhile([](Room& room) {
      auto* const harmless = reinterpret_cast<std::uint64_t*>(room.escaped_on_device);
      return std::pair{harmless + 1, harmless + 2};
    });
  }
  return [](Room& room, Call& call) {
    call.close();
    do_work(room);
    call.honest_end();
  };
}

Scenario scenario(const std::string& name, Room& room, const std::string& filter) {
  if (name == "null" || name == "one_thread_null") {
    return [](Room& /*room*/, Call& call) {
      call.close();
      call.honest_end();
    };
  }
  if (name == "null_written") {  // what storing takes when the result has just been written
    return [](Room& r, Call& call) {
      call.close();
      check(cudaMemsetAsync(r.own, 1, output_bytes, nullptr), "writing");
      call.honest_end();
    };
  }
  if (name == "work") return honest_counterpart(name);
  if (name == "nonblocking" || name == "one_thread_gate") return stray_on(new_stream(cudaStreamNonBlocking, false));
  if (name == "priority") return stray_on(new_stream(cudaStreamNonBlocking, true));
  if (name == "per_thread") return stray_on(cudaStreamPerThread);
  if (name == "graph") return stray_in_graph(room);
  if (name == "second_context") return second_context(false, filter);
  if (name == "second_context_sealed") return second_context(true, filter);
  if (name == "child_process_sealed") return child_process(filter);
  if (name == "done1_early") {  // native code of the candidate says that the model has returned, and enqueues it later
    return [](Room& r, Call& call) {
      call.close();
      call.returned();
      call.first();
      do_work(r);
      call.store();
      call.second();
      call.armed();
    };
  }
  if (name == "done2_early") {
    return [](Room& r, Call& call) {
      call.close();
      call.returned();
      call.first();
      call.second();
      do_work(r);
      call.store();
      call.armed();
    };
  }
  if (name == "done_by_kernel") {  // a kernel that writes both itself, on a stream that does not wait
    cudaStream_t const stream = new_stream(cudaStreamNonBlocking, true);
    return [stream](Room& r, Call& call) {
      call.close();
      call.returned();
      launch_write(&r.on_device->done1, call.nonce(), 1, stream);
      launch_write(&r.on_device->done2, call.nonce(), 1, stream);
      do_work(r);
      call.first();
      call.store();
      call.second();
      call.armed();
    };
  }
  if (name == "done_guessed") {  // without the nonce
    return written_meanwhile([](Room& r) { return std::pair{&r.on_device->done1, &r.on_device->done2}; });
  }
  if (name == "armed_early") {  // go comes while the model is still being enqueued
    return [](Room& r, Call& call) {
      call.close();
      call.returned();
      call.armed();
      pass_time(std::chrono::microseconds(300));
      do_work(r);
      call.first();
      call.store();
      call.second();
    };
  }
  if (name == "beat_by_kernel") {  // says that the gate runs while it may not
    cudaStream_t const stream = new_stream(cudaStreamNonBlocking, true);
    return [stream](Room& r, Call& call) {
      launch_beat(&r.on_device->beat, 1 << 14, stream);
      call.close();
      do_work(r);
      call.honest_end();
    };
  }
  if (name == "beat_by_thread") {
    return [](Room& r, Call& call) {
      Forger const forger(*r.page, call.ticket());
      call.close();
      do_work(r);
      call.honest_end();
      pass_time(hold);
    };
  }
  if (name == "no_gate") {  // never closes it, says that it did, and works on the inputs before they are whole
    return [](Room& r, Call& call) {
      Forger const forger(*r.page, call.ticket());
      launch_increment(r.input, r.own, output_bytes / 4, nullptr);
      check(cudaDeviceSynchronize(), "working early");
      call.honest_end();
      pass_time(hold);
    };
  }
  if (name == "increment") {
    return [](Room& r, Call& call) {
      call.close();
      launch_increment(r.input, r.own, output_bytes / 4, nullptr);
      call.honest_end();
    };
  }
  throw std::runtime_error("unknown scenario " + name);
}

int serve(worker::Link& link) {
  auto const [text, fds] = link.receive();
  std::size_t const space = text.find(' ');
  std::string const name = text.substr(0, space);
  std::string const hexadecimal = space == std::string::npos ? "" : text.substr(space + 1);
  std::string filter;
  for (std::size_t i = 0; i + 1 < hexadecimal.size(); i += 2) {
    filter += static_cast<char>(std::stoi(hexadecimal.substr(i, 2), nullptr, 16));
  }
  check(cudaSetDevice(0), "starting");
  check(cudaFree(nullptr), "starting");
  int const again = ::dup(fds.at(0));
  worker::CudaGate gate(fds.at(0), name.rfind("one_thread", 0) != 0);
  worker::LentMemory const input(fds.at(1), input_bytes);
  worker::LentMemory const output(fds.at(2), output_bytes);
  Room room{.link = link, .gate = gate};
  room.page = static_cast<worker::ControlPage*>(
      ::mmap(nullptr, worker::control_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0));
  check(cudaHostRegister(room.page, worker::control_bytes, cudaHostRegisterMapped), "sharing the page");
  check(cudaHostGetDevicePointer(reinterpret_cast<void**>(&room.on_device), room.page, 0), "sharing the page");
  check(cudaHostAlloc(reinterpret_cast<void**>(&room.escaped), 64, cudaHostAllocMapped), "setting memory aside");
  *room.escaped = 0;
  check(cudaHostGetDevicePointer(reinterpret_cast<void**>(&room.escaped_on_device), room.escaped, 0), "sharing memory");
  room.input = static_cast<std::uint32_t*>(input.base());
  room.output = static_cast<std::uint32_t*>(output.base());
  check(cudaMalloc(reinterpret_cast<void**>(&room.own), output_bytes), "setting memory aside");
  check(cudaMemset(room.own, 0, output_bytes), "setting memory aside");
  // Each kernel once: what loads lazily must not do so behind the gate.
  launch_stray(&room.on_device->go, room.escaped_on_device, nullptr);
  do_work(room);
  launch_increment(room.own, room.own, 16, nullptr);
  launch_write(&room.on_device->done1, 0, 1, nullptr);
  launch_beat(&room.on_device->beat, 1, nullptr);
  check(cudaDeviceSynchronize(), "trying the kernels");
  Scenario const run = scenario(name, room, filter);
  Scenario const honest = honest_counterpart(name);
  check(cudaDeviceSynchronize(), "trying the kernels");
  *room.escaped = 0;
  link.send("ready");
  for (;;) {
    std::string const asked = link.receive().first;
    if (asked == "end") return 0;
    link.send_mark('R');
    std::string const start = link.receive().first;
    Call call(room, std::stoull(start.substr(start.find(' ') + 1), nullptr, 16), start[0] == 'c');
    gate.reset_cache();
    (asked == "honest" ? honest : run)(room, call);
    check(cudaDeviceSynchronize(), "a timed call");
    link.send(std::to_string(*room.escaped));
    *room.escaped = 0;
  }
}

}  // namespace

int work_for_the_supervisor(int fd) {
  worker::Link link(fd);
  try {
    return serve(link);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gate probe: %s\n", error.what());
    return 1;
  }
}

}  // namespace probe
