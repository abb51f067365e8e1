#include "exec/capture.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

namespace cuda_agent::exec {

std::string Captured::text() const {
  if (dropped == 0) return head + tail;
  return fmt::format("{}\n[... {} bytes left out ...]\n{}", head, dropped, tail);
}

Capture::Capture(util::Fd pipe, std::size_t head, std::size_t tail)
    : m_pipe(std::move(pipe)), m_head(head), m_tail(tail) {}

void Capture::drain() {
  std::array<char, std::size_t{64} * 1024> buffer;  // NOLINT(*-member-init): filled by read
  for (int reads = 0; m_pipe && reads < 64; ++reads) {
    ssize_t const got = ::read(m_pipe.get(), buffer.data(), buffer.size());
    if (got > 0) {
      keep({buffer.data(), static_cast<std::size_t>(got)});
    } else if (got == 0) {
      m_pipe.reset();
    } else if (errno != EINTR) {
      break;
    }
  }
  cut_tail();
}

void Capture::keep(std::string_view bytes) {
  std::size_t const to_head = std::min(bytes.size(), m_head - m_captured.head.size());
  m_captured.head.append(bytes.substr(0, to_head));
  m_captured.tail.append(bytes.substr(to_head));
  // Cut only now and then: each cut moves what is kept.
  if (m_captured.tail.size() > 2 * m_tail) cut_tail();
}

void Capture::cut_tail() {
  if (m_captured.tail.size() <= m_tail) return;
  std::size_t const excess = m_captured.tail.size() - m_tail;
  m_captured.tail.erase(0, excess);
  m_captured.dropped += excess;
}

}  // namespace cuda_agent::exec
