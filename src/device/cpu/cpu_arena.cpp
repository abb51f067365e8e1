#include "device/cpu/cpu_arena.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cuda_agent::device {
namespace {

tl::unexpected<Error> no_memory(std::uint64_t bytes, const char* step) {
  return fail(
      Outcome::environment_error,
      fmt::format("cannot set aside {} bytes of host memory for tensors ({}: {})", bytes, step, std::strerror(errno)),
      {"free memory on this machine, or judge a task with smaller inputs"});
}

/// Bytes that can still be had without swapping. A memfd takes pages until the machine has none left, so what cannot
/// fit has to be refused before.
std::uint64_t available_memory() {
  std::ifstream info("/proc/meminfo");
  std::string name;
  std::uint64_t kibibytes = 0;
  std::string unit;
  while (info >> name >> kibibytes) {
    std::getline(info, unit);
    if (name == "MemAvailable:") return kibibytes * 1024;
  }
  return std::numeric_limits<std::uint64_t>::max();
}

/// What must stay free for the workers themselves.
constexpr std::uint64_t reserve = std::uint64_t{512} << 20;

Result<void> must_fit(std::uint64_t bytes) {
  std::uint64_t const available = available_memory();
  if (bytes <= available && available - bytes >= reserve) return {};
  return fail(Outcome::environment_error,
              fmt::format("cannot set aside {} bytes of host memory for tensors: {} bytes are available, of which {} "
                          "are kept free",
                          bytes, available, reserve),
              {"free memory on this machine, or judge a task with smaller inputs"});
}

/// A mapping of length 0 is not possible; an arena of no bytes has one page.
std::uint64_t at_least_a_page(std::uint64_t bytes) { return bytes == 0 ? 4096 : bytes; }

}  // namespace

Result<std::unique_ptr<CpuArena>> CpuArena::lendable(std::uint64_t bytes) {
  bytes = at_least_a_page(bytes);
  if (auto const fits = must_fit(bytes); !fits) return fail(fits.error());
  util::Fd fd(::memfd_create("cuda-agent-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return no_memory(bytes, "memfd_create");
  // posix_fallocate would fill the pages at once and fail here, instead of a SIGBUS later on a full machine.
  if (int const reason = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)); reason != 0) {
    errno = reason;
    return no_memory(bytes, "fallocate");
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return no_memory(bytes, "sealing");
  }
  void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (base == MAP_FAILED) return no_memory(bytes, "mmap");
  return std::unique_ptr<CpuArena>(new CpuArena(std::move(fd), static_cast<std::byte*>(base), bytes));
}

Result<std::unique_ptr<CpuArena>> CpuArena::unshared(std::uint64_t bytes) {
  bytes = at_least_a_page(bytes);
  if (auto const fits = must_fit(bytes); !fits) return fail(fits.error());
  void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (base == MAP_FAILED) return no_memory(bytes, "mmap");
  return std::unique_ptr<CpuArena>(new CpuArena(util::Fd(), static_cast<std::byte*>(base), bytes));
}

CpuArena::~CpuArena() { ::munmap(m_base, m_bytes); }

Result<std::span<std::byte>> memory_of(const Span& span) {
  auto* const arena = dynamic_cast<CpuArena*>(span.arena);
  if (arena == nullptr || span.at > arena->size() || span.bytes > arena->size() - span.at) {
    return fail(Outcome::internal_error, fmt::format("bytes {}+{} lie outside their arena", span.at, span.bytes));
  }
  return arena->memory().subspan(span.at, span.bytes);
}

}  // namespace cuda_agent::device
