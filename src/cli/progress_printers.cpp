#include "cli/progress_printers.hpp"

#include <ostream>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include "util/text.hpp"

namespace cuda_agent::cli {

namespace {

constexpr std::string_view k_clear_line = "\r\033[K";

std::size_t terminal_columns() {
  winsize size{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg): ioctl is what there is
  auto const known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

/// At most `columns` - 1 characters, so that the cursor never wraps. UTF-8 is cut between characters.
std::string fitted(std::string text, std::size_t columns) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto const continues = (static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U;
    if (!continues && ++characters >= columns) {
      text.resize(i);
      break;
    }
  }
  return text;
}

}  // namespace

void PlainProgress::step(std::string_view text) {
  std::lock_guard const guard(m_mutex);
  auto line = util::escape_untrusted(text, 1024);
  if (line == m_last) return;
  m_out << "cuda-agent: " << line << '\n' << std::flush;
  m_last = std::move(line);
}

void PlainProgress::note(std::string_view text) {
  std::lock_guard const guard(m_mutex);
  m_out << "cuda-agent: " << util::escape_untrusted(text, 4096) << '\n' << std::flush;
}

UpdatingProgress::UpdatingProgress(std::ostream& out, std::function<std::size_t()> columns)
    : m_out(out), m_columns(columns ? std::move(columns) : std::function<std::size_t()>(terminal_columns)) {}

UpdatingProgress::~UpdatingProgress() {
  if (!m_line.empty()) m_out << k_clear_line << std::flush;
}

void UpdatingProgress::step(std::string_view text) {
  std::lock_guard const guard(m_mutex);
  auto const one_line = util::join(util::split_lines(util::escape_untrusted(text, 1024)), " ");
  m_line = fitted(one_line, m_columns());
  m_out << k_clear_line << m_line << std::flush;
}

void UpdatingProgress::note(std::string_view text) {
  std::lock_guard const guard(m_mutex);
  m_out << k_clear_line << util::escape_untrusted(text, 4096) << '\n' << m_line << std::flush;
}

}  // namespace cuda_agent::cli
