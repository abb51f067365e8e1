#include "util/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <numeric>
#include <utility>

#include <spdlog/fmt/fmt.h>

namespace cuda_agent::util {

namespace {

std::uint8_t byte_at(std::string_view text, std::size_t at) { return static_cast<std::uint8_t>(text[at]); }

bool is_continuation(std::uint8_t byte) { return (byte & 0xC0U) == 0x80U; }

struct Character {
  std::size_t bytes = 1;
  bool show = false;  // as it is; else as \xNN, byte by byte
};

bool harmless(std::uint32_t code) {
  if (code < 0x20) return code == '\n' || code == '\t';
  if (code >= 0x7F && code < 0xA0) return false;  // DEL, C1
  bool const reorders = code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                        (code >= 0x2066 && code <= 0x2069);
  bool const breaks_line = code == 0x2028 || code == 0x2029;
  return !reorders && !breaks_line;
}

// The character at `at`. Overlong forms, surrogates and codes past U+10FFFF are no UTF-8: one byte, not shown.
Character character_at(std::string_view text, std::size_t at) {
  std::uint8_t const lead = byte_at(text, at);
  if (lead < 0x80) return {1, harmless(lead)};
  std::size_t bytes = 0;
  std::uint32_t code = 0;
  std::uint32_t least = 0;
  if ((lead & 0xE0U) == 0xC0U) {
    bytes = 2, code = lead & 0x1FU, least = 0x80;
  } else if ((lead & 0xF0U) == 0xE0U) {
    bytes = 3, code = lead & 0x0FU, least = 0x800;
  } else if ((lead & 0xF8U) == 0xF0U) {
    bytes = 4, code = lead & 0x07U, least = 0x10000;
  } else {
    return {};
  }
  if (at + bytes > text.size()) return {};
  for (std::size_t i = 1; i < bytes; ++i) {
    std::uint8_t const next = byte_at(text, at + i);
    if (!is_continuation(next)) return {};
    code = (code << 6U) | (next & 0x3FU);
  }
  if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {bytes, harmless(code)};
}

std::size_t shown_size(Character c) { return c.show ? c.bytes : 4 * c.bytes; }

void append_character(std::string& out, std::string_view raw, std::size_t at, Character c) {
  if (c.show) {
    out.append(raw.substr(at, c.bytes));
    return;
  }
  for (std::size_t i = 0; i < c.bytes; ++i) out += fmt::format("\\x{:02x}", byte_at(raw, at + i));
}

struct Escaped {
  std::string text;
  std::size_t consumed = 0;  // bytes of the raw text
};

// From the front, as many whole characters as fit.
Escaped escape_front(std::string_view raw, std::size_t limit) {
  Escaped out;
  while (out.consumed < raw.size()) {
    Character const c = character_at(raw, out.consumed);
    if (out.text.size() + shown_size(c) > limit) break;
    append_character(out.text, raw, out.consumed, c);
    out.consumed += c.bytes;
  }
  return out;
}

// From the end, as many whole characters as fit.
Escaped escape_back(std::string_view raw, std::size_t limit) {
  // Escaping never shortens, so no more than the last `limit` bytes can fit.
  std::size_t begin = raw.size() - std::min(raw.size(), limit);
  for (int i = 0; i < 3 && begin < raw.size() && begin > 0 && is_continuation(byte_at(raw, begin)); ++i) ++begin;
  std::size_t total = 0;
  for (std::size_t at = begin; at < raw.size();) {
    Character const c = character_at(raw, at);
    total += shown_size(c);
    at += c.bytes;
  }
  while (total > limit) {
    Character const c = character_at(raw, begin);
    total -= shown_size(c);
    begin += c.bytes;
  }
  return {escape_front(raw.substr(begin), limit).text, raw.size() - begin};
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Optimal string alignment distance: insert, delete, replace, swap of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t const replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

std::string escape_untrusted(std::string_view raw, std::size_t limit) {
  Escaped whole = escape_front(raw, limit);
  if (whole.consumed == raw.size()) return std::move(whole.text);

  Escaped const head = escape_front(raw, limit / 2);
  Escaped const tail = escape_back(raw.substr(head.consumed), limit / 2);
  return fmt::format("{}\n[... {} bytes left out ...]\n{}", head.text, raw.size() - head.consumed - tail.consumed,
                     tail.text);
}

std::optional<std::string> closest(std::string_view word, const std::vector<std::string>& known) {
  std::string const wanted = lower(word);
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (auto const& candidate : known) {
    std::size_t const longer = std::max(wanted.size(), candidate.size());
    std::size_t const allowed = std::max<std::size_t>(1, longer / 3);
    std::size_t const distance = edit_distance(wanted, lower(candidate));
    if (distance > allowed || distance >= longer) continue;
    if (!best || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, fmt::string_view(separator.data(), separator.size())));
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    std::size_t const end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

}  // namespace cuda_agent::util
