#ifdef CUDA_AGENT_TORCH_CUDA

#include "cuda_gate.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace worker {
namespace {

// Written in the driver's own language, which compiles it for whatever GPU this is: no compiler is needed here.
//
// gate: each block counts itself in and stays until the page's `go` equals the ticket. The first block alone looks at
// host memory, and beats there; the others look at a flag of its in device memory.
// answer: one word, written when all that was enqueued before has ended.
// nothing: what a launch costs by itself.
constexpr const char* kernels = R"(
.version 6.4
.target sm_70
.address_size 64

.visible .entry cuda_agent_gate(.param .u64 page, .param .u64 flags, .param .u32 goal, .param .u64 ticket)
{
  .reg .pred %p<6>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<8>;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra STAY;
  ld.param.u64 %rd1, [page];
  cvta.to.global.u64 %rd1, %rd1;
  ld.param.u64 %rd2, [flags];
  cvta.to.global.u64 %rd2, %rd2;
  ld.param.u32 %r2, [goal];
  ld.param.u64 %rd3, [ticket];
  atom.global.add.u32 %r3, [%rd2], 1;
  add.u32 %r3, %r3, 1;
  setp.ne.u32 %p2, %r3, %r2;
  @%p2 bra COUNTED;
  membar.sys;
  st.volatile.global.u64 [%rd1+128], %rd3;
COUNTED:
  mov.u32 %r4, %ctaid.x;
  setp.ne.u32 %p3, %r4, 0;
  @%p3 bra FOLLOW;
  mov.u64 %rd4, 0;
LEAD:
  add.u64 %rd4, %rd4, 1;
  st.volatile.global.u64 [%rd1+256], %rd4;
  ld.volatile.global.u64 %rd5, [%rd1];
  setp.ne.u64 %p4, %rd5, %rd3;
  @%p4 bra LEAD;
  st.volatile.global.u64 [%rd2+128], %rd3;
  bra STAY;
FOLLOW:
  ld.volatile.global.u64 %rd6, [%rd2+128];
  setp.ne.u64 %p5, %rd6, %rd3;
  @%p5 bra FOLLOW;
STAY:
  bar.sync 0;
  ret;
}

.visible .entry cuda_agent_nothing()
{
  ret;
}

.visible .entry cuda_agent_answer(.param .u64 place, .param .u64 nonce)
{
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [place];
  cvta.to.global.u64 %rd1, %rd1;
  ld.param.u64 %rd2, [nonce];
  membar.sys;
  st.volatile.global.u64 [%rd1], %rd2;
  ret;
}
)";
static_assert(offsetof(ControlPage, go) == 0 && offsetof(ControlPage, resident) == 128 &&
              offsetof(ControlPage, beat) == 256);

constexpr unsigned gate_threads = 512;
/// When it is not closed by then, something else holds the device: the supervisor will not take it for closed.
constexpr std::chrono::milliseconds longest_closing{500};
constexpr std::size_t flag_bytes = 256;

/// The driver's calls. The library is loaded already; this only finds its names.
struct DriverCalls {
  decltype(&cuMemImportFromShareableHandle) mem_import;
  decltype(&cuMemRelease) mem_release;
  decltype(&cuMemAddressReserve) address_reserve;
  decltype(&cuMemAddressFree) address_free;
  decltype(&cuMemMap) mem_map;
  decltype(&cuMemUnmap) mem_unmap;
  decltype(&cuMemSetAccess) mem_set_access;
  decltype(&cuModuleLoadData) module_load;
  decltype(&cuModuleUnload) module_unload;
  decltype(&cuModuleGetFunction) module_function;
  decltype(&cuOccupancyMaxActiveBlocksPerMultiprocessor) occupancy;
  decltype(&cuLaunchKernel) launch;
  decltype(&cuCtxResetPersistingL2Cache) reset_persisting;
};

template <typename Call>
void find_call(void* library, Call& call, const char* name) {
  call = reinterpret_cast<Call>(::dlsym(library, name));
  if (call == nullptr) {
    throw std::runtime_error(std::string("the NVIDIA driver has no ") + name);
  }
}

const DriverCalls& driver_calls() {
  static DriverCalls const calls = [] {
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) {
      throw std::runtime_error("libcuda.so.1, the NVIDIA driver, is not there");
    }
    DriverCalls found{};
    find_call(library, found.mem_import, "cuMemImportFromShareableHandle");
    find_call(library, found.mem_release, "cuMemRelease");
    find_call(library, found.address_reserve, "cuMemAddressReserve");
    find_call(library, found.address_free, "cuMemAddressFree");
    find_call(library, found.mem_map, "cuMemMap");
    find_call(library, found.mem_unmap, "cuMemUnmap");
    find_call(library, found.mem_set_access, "cuMemSetAccess");
    find_call(library, found.module_load, "cuModuleLoadData");
    find_call(library, found.module_unload, "cuModuleUnload");
    find_call(library, found.module_function, "cuModuleGetFunction");
    find_call(library, found.occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    find_call(library, found.launch, "cuLaunchKernel");
    find_call(library, found.reset_persisting, "cuCtxResetPersistingL2Cache");
    return found;
  }();
  return calls;
}

void check_runtime(cudaError_t status, const char* doing) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(doing) + ": " + cudaGetErrorString(status));
  }
}

}  // namespace

void check_driver(CUresult status, const char* doing) {
  if (status != CUDA_SUCCESS) {
    throw std::runtime_error(std::string(doing) + ": CUDA driver error " + std::to_string(static_cast<int>(status)));
  }
}

LentMemory::LentMemory(int fd, std::uint64_t bytes) : m_bytes(bytes) {
  auto const& d = driver_calls();
  auto* const handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(fd));
  CUresult const imported = d.mem_import(&m_memory, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  ::close(fd);
  check_driver(imported, "taking lent GPU memory");
  m_created = true;
  int device = 0;
  check_runtime(cudaGetDevice(&device), "asking for the current GPU");
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  try {
    check_driver(d.address_reserve(&m_address, bytes, 0, 0, 0), "reserving addresses for lent GPU memory");
    check_driver(d.mem_map(m_address, bytes, 0, m_memory, 0), "mapping lent GPU memory");
    m_mapped = true;
    check_driver(d.mem_set_access(m_address, bytes, &access, 1), "mapping lent GPU memory");
  } catch (...) {
    this->~LentMemory();
    throw;
  }
}

LentMemory::~LentMemory() {
  auto const& d = driver_calls();
  if (m_mapped) {
    (void)d.mem_unmap(m_address, m_bytes);
  }
  if (m_address != 0) {
    (void)d.address_free(m_address, m_bytes);
  }
  if (m_created) {
    (void)d.mem_release(m_memory);
  }
}

CudaGate::CudaGate(int fd, bool whole) : m_threads(whole ? gate_threads : 1) {
  auto const& d = driver_calls();
  void* const page = ::mmap(nullptr, control_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (page == MAP_FAILED) {
    throw std::runtime_error("cannot map the control page");
  }
  m_page = page;
  check_runtime(cudaHostRegister(m_page, control_bytes, cudaHostRegisterMapped),
                "sharing the control page with the GPU");
  void* on_device = nullptr;
  check_runtime(cudaHostGetDevicePointer(&on_device, m_page, 0), "sharing the control page with the GPU");
  m_page_on_device = reinterpret_cast<std::uint64_t>(on_device);
  check_driver(d.module_load(&m_module, kernels), "loading the gate's kernels");
  check_driver(d.module_function(&m_gate, m_module, "cuda_agent_gate"), "loading the gate's kernels");
  check_driver(d.module_function(&m_answer, m_module, "cuda_agent_answer"), "loading the gate's kernels");
  check_driver(d.module_function(&m_nothing, m_module, "cuda_agent_nothing"), "loading the gate's kernels");
  void* flags = nullptr;
  check_runtime(cudaMalloc(&flags, flag_bytes), "setting aside the gate's flags");
  m_flags = reinterpret_cast<CUdeviceptr>(flags);
  check_runtime(cudaMemset(flags, 0, flag_bytes), "setting aside the gate's flags");
  int device = 0;
  int processors = 0;
  int blocks = 0;
  check_runtime(cudaGetDevice(&device), "asking for the current GPU");
  check_runtime(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
                "asking for the GPU's size");
  check_driver(d.occupancy(&blocks, m_gate, static_cast<int>(gate_threads), 0), "asking for the gate's size");
  m_blocks = whole ? static_cast<unsigned>(processors * blocks) : 1;
  // Each kernel once: what loads lazily must not do so in a timed call.
  static_cast<ControlPage*>(m_page)->go = 1;
  close(1);
  answer_first(0);
  answer_second(0);
  nothing(1);
  check_runtime(cudaDeviceSynchronize(), "trying the gate");
}

CudaGate::~CudaGate() {
  if (m_module != nullptr) {
    (void)driver_calls().module_unload(m_module);
  }
  (void)cudaFree(reinterpret_cast<void*>(m_flags));
  (void)cudaHostUnregister(m_page);
  ::munmap(m_page, control_bytes);
}

void CudaGate::close(std::uint64_t ticket) {
  m_counted += m_blocks;
  std::array<void*, 4> parameters{&m_page_on_device, &m_flags, &m_counted, &ticket};
  auto& resident = static_cast<ControlPage*>(m_page)->resident;
  check_driver(driver_calls().launch(m_gate, m_blocks, 1, 1, m_threads, 1, 1, 0, m_stream, parameters.data(), nullptr),
               "closing the gate");
  // Until it fills the device, a kernel on another stream could still get in: nobody may launch one before.
  std::atomic_ref<std::uint64_t> const place(resident);
  auto const end = std::chrono::steady_clock::now() + longest_closing;
  while (place.load(std::memory_order_acquire) != ticket && std::chrono::steady_clock::now() < end) {
  }
}

void CudaGate::answer_first(std::uint64_t nonce) { answer(offsetof(ControlPage, done1), nonce); }
void CudaGate::answer_second(std::uint64_t nonce) { answer(offsetof(ControlPage, done2), nonce); }

void CudaGate::answer(std::uint64_t offset, std::uint64_t nonce) {
  std::uint64_t place = m_page_on_device + offset;
  std::array<void*, 2> parameters{&place, &nonce};
  check_driver(driver_calls().launch(m_answer, 1, 1, 1, 1, 1, 1, 0, m_stream, parameters.data(), nullptr), "answering");
}

void CudaGate::nothing(int launches) {
  for (int i = 0; i < launches; ++i) {
    check_driver(driver_calls().launch(m_nothing, 1, 1, 1, 1, 1, 1, 0, m_stream, nullptr, nullptr),
                 "launching nothing");
  }
}

void CudaGate::reset_cache() { (void)driver_calls().reset_persisting(); }

}  // namespace worker

#endif
