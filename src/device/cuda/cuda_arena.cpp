#include "device/cuda/cuda_arena.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/cuda/driver.hpp"
#include "worker/control_page.hpp"

namespace cuda_agent::device {
namespace {

std::string purpose(std::uint64_t bytes) { return fmt::format("{} bytes for tensors", bytes); }

/// Undone in reverse order, as far as it came.
class LendableArena final : public CudaArena {
 public:
  explicit LendableArena(const Driver& driver) : m_driver(driver) {}
  LendableArena(const LendableArena&) = delete;
  LendableArena& operator=(const LendableArena&) = delete;
  ~LendableArena() override {
    if (m_mapped) (void)m_driver.mem_unmap(m_address, m_bytes);
    if (m_address != 0) (void)m_driver.address_free(m_address, m_bytes);
    if (m_created) (void)m_driver.mem_release(m_memory);
  }

  Result<void> make(int gpu, std::uint64_t bytes) {
    std::string const doing = purpose(bytes);
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = gpu;
    std::size_t step = 0;
    auto const asked = m_driver.granularity(&step, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    if (auto done = checked(asked, doing); !done) return done;
    m_bytes = (std::max<std::uint64_t>(bytes, 1) + step - 1) / step * step;
    if (auto done = checked(m_driver.mem_create(&m_memory, m_bytes, &properties, 0), doing); !done) return done;
    m_created = true;
    if (auto done = checked(m_driver.address_reserve(&m_address, m_bytes, 0, 0, 0), doing); !done) return done;
    if (auto done = checked(m_driver.mem_map(m_address, m_bytes, 0, m_memory, 0), doing); !done) return done;
    m_mapped = true;
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (auto done = checked(m_driver.mem_set_access(m_address, m_bytes, &access, 1), doing); !done) return done;
    int fd = -1;
    auto const exported = m_driver.mem_export(&fd, m_memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (auto done = checked(exported, "lending memory to a worker"); !done) return done;
    m_fd = util::Fd(fd);
    (void)::fcntl(fd, F_SETFD, FD_CLOEXEC);
    return {};
  }

  std::uint64_t size() const override { return m_bytes; }
  int descriptor() const override { return m_fd.get(); }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver gives addresses as numbers
  std::byte* base() const override { return reinterpret_cast<std::byte*>(m_address); }

 private:
  const Driver& m_driver;
  CUmemGenericAllocationHandle m_memory = 0;
  CUdeviceptr m_address = 0;
  std::uint64_t m_bytes = 0;
  bool m_created = false;
  bool m_mapped = false;
  util::Fd m_fd;
};

class UnsharedArena final : public CudaArena {
 public:
  UnsharedArena(std::byte* base, std::uint64_t bytes) : m_base(base), m_bytes(bytes) {}
  UnsharedArena(const UnsharedArena&) = delete;
  UnsharedArena& operator=(const UnsharedArena&) = delete;
  ~UnsharedArena() override { (void)cudaFree(m_base); }

  std::uint64_t size() const override { return m_bytes; }
  int descriptor() const override { return -1; }
  std::byte* base() const override { return m_base; }

 private:
  std::byte* m_base;
  std::uint64_t m_bytes;
};

}  // namespace

Result<std::unique_ptr<CudaArena>> CudaArena::lendable(int gpu, std::uint64_t bytes) {
  auto const calls = driver();
  if (!calls) return fail(calls.error());
  auto arena = std::make_unique<LendableArena>(**calls);
  if (auto made = arena->make(gpu, bytes); !made) return fail(made.error());
  return std::unique_ptr<CudaArena>(std::move(arena));
}

Result<std::unique_ptr<CudaArena>> CudaArena::unshared(std::uint64_t bytes) {
  bytes = std::max<std::uint64_t>(bytes, 1);
  void* base = nullptr;
  if (auto made = checked(cudaMalloc(&base, bytes), purpose(bytes)); !made) return fail(made.error());
  return std::unique_ptr<CudaArena>(std::make_unique<UnsharedArena>(static_cast<std::byte*>(base), bytes));
}

Result<std::byte*> address_of(const Span& span) {
  auto* const arena = dynamic_cast<CudaArena*>(span.arena);
  if (arena == nullptr || span.at > arena->size() || span.bytes > arena->size() - span.at) {
    return fail(Outcome::internal_error, fmt::format("bytes {}+{} lie outside their arena", span.at, span.bytes));
  }
  return arena->base() + span.at;
}

Result<std::unique_ptr<ControlArena>> ControlArena::make() {
  auto const failed = [](const char* step) {
    return fail(Outcome::environment_error,
                fmt::format("cannot make a page to share with a worker ({}: {})", step, std::strerror(errno)));
  };
  util::Fd fd(::memfd_create("cuda-agent-control", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return failed("memfd_create");
  if (::ftruncate(fd.get(), static_cast<off_t>(worker::control_bytes)) != 0) return failed("ftruncate");
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return failed("sealing");
  void* const page =
      ::mmap(nullptr, worker::control_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (page == MAP_FAILED) return failed("mmap");
  return std::unique_ptr<ControlArena>(new ControlArena(std::move(fd), page));
}

ControlArena::~ControlArena() { ::munmap(m_page, worker::control_bytes); }

std::uint64_t ControlArena::size() const { return worker::control_bytes; }

}  // namespace cuda_agent::device
