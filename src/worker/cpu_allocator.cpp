#include "cpu_allocator.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <sys/mman.h>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

namespace worker {
namespace {

/// What torch promises to its kernels; also the size of the header in front of every block.
constexpr std::size_t tensor_alignment = 64;
/// Smaller ones are malloc's business: they do not get new pages.
constexpr std::size_t smallest_cached = std::size_t{64} << 10;
constexpr std::size_t huge_page = std::size_t{2} << 20;
/// Freed memory above this goes back to the system.
constexpr std::size_t most_cached = std::size_t{4} << 30;

struct Header {
  std::size_t mapped;  ///< bytes with this header; 0: malloc's
};
static_assert(sizeof(Header) <= tensor_alignment);

Header* header_of(void* data) { return reinterpret_cast<Header*>(static_cast<char*>(data) - tensor_alignment); }

/// Sizes are rounded up to an eighth of their power of two, so that results of nearly one size share blocks.
std::size_t rounded_block(std::size_t bytes) {
  std::size_t const step = std::max(std::bit_floor(bytes) / 8, bytes >= huge_page ? huge_page : std::size_t{4096});
  return (bytes + step - 1) / step * step;
}

class FreeBlocks {
 public:
  void* take(std::size_t mapped) {
    std::lock_guard const lock(m_mutex);
    auto const found = m_blocks.find(mapped);
    if (found == m_blocks.end() || found->second.empty()) {
      return nullptr;
    }
    void* const base = found->second.back();
    found->second.pop_back();
    m_bytes -= mapped;
    return base;
  }

  void give(void* base, std::size_t mapped) {
    {
      std::lock_guard const lock(m_mutex);
      if (m_bytes + mapped <= most_cached) {
        m_blocks[mapped].push_back(base);
        m_bytes += mapped;
        return;
      }
    }
    ::munmap(base, mapped);
  }

  void drop_all() {
    std::lock_guard const lock(m_mutex);
    for (auto& [mapped, blocks] : m_blocks) {
      for (void* const base : blocks) {
        ::munmap(base, mapped);
      }
    }
    m_blocks.clear();
    m_bytes = 0;
  }

 private:
  std::mutex m_mutex;
  std::map<std::size_t, std::vector<void*>> m_blocks;  ///< by size, the last freed last
  std::size_t m_bytes = 0;
};

/// Never destroyed: tensors outlive every other object.
FreeBlocks& free_blocks() {
  static auto* const blocks = new FreeBlocks;
  return *blocks;
}

/// On whole huge pages where the size allows: what a walk through cold page tables takes differs between processes.
void* map_block(std::size_t bytes) {
  std::size_t const extra = bytes >= huge_page ? huge_page : 0;
  void* const got = ::mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) {
    return nullptr;
  }
  if (extra == 0) {
    return got;
  }
  char* const first = static_cast<char*>(got);
  std::size_t const skipped = (huge_page - reinterpret_cast<std::uintptr_t>(got) % huge_page) % huge_page;
  if (skipped > 0) {
    ::munmap(first, skipped);
  }
  if (skipped < extra) {
    ::munmap(first + skipped + bytes, extra - skipped);
  }
  ::madvise(first + skipped, bytes, MADV_HUGEPAGE);  // where there are none, small pages do
  return first + skipped;
}

void release_block(void* data) {
  if (data == nullptr) {
    return;
  }
  Header* const header = header_of(data);
  if (header->mapped == 0) {
    std::free(header);
  } else {
    free_blocks().give(header, header->mapped);
  }
}

class CachingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* const data = bytes == 0 ? nullptr : block(bytes);
    return {data, data, &release_block, c10::Device(c10::DeviceType::CPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release_block; }

  void copy_data(void* dest, const void* src, std::size_t count) const override { default_copy_data(dest, src, count); }

 private:
  static void* block(std::size_t bytes) {
    TORCH_CHECK(bytes < (std::size_t{1} << 62), "a tensor of ", bytes, " bytes");
    std::size_t mapped = 0;
    void* base = nullptr;
    if (bytes < smallest_cached) {
      if (::posix_memalign(&base, tensor_alignment, bytes + tensor_alignment) != 0) {
        base = nullptr;
      }
    } else {
      mapped = rounded_block(bytes + tensor_alignment);
      base = free_blocks().take(mapped);
      if (base == nullptr) {
        base = map_block(mapped);
      }
      if (base == nullptr) {
        free_blocks().drop_all();
        base = map_block(mapped);
      }
    }
    TORCH_CHECK(base != nullptr, "not enough memory for a tensor of ", bytes, " bytes");
    new (base) Header{mapped};
    return static_cast<char*>(base) + tensor_alignment;
  }
};

}  // namespace

void cache_cpu_memory() {
  // Taken over by torch for good.
  c10::SetCPUAllocator(std::make_unique<CachingAllocator>().release(), 1);
}

}  // namespace worker
