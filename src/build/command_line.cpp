#include "build/command_line.hpp"

#include <algorithm>
#include <utility>

namespace cuda_agent::build {

namespace {

constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view digits = "0123456789";

bool is_letter(char c) { return c == '_' || letters.find(c) != std::string_view::npos; }
bool is_digit(char c) { return digits.find(c) != std::string_view::npos; }
bool is_plain(char c) {
  constexpr std::string_view marks = "-+=./:,@%";
  return is_letter(c) || is_digit(c) || marks.find(c) != std::string_view::npos;
}
// Of what is printable, $ and " are looked at elsewhere.
bool is_plain_in_quotes(char c) { return c >= ' ' && c <= '~' && c != '\\' && c != '`' && c != '!'; }

class Splitter {
 public:
  Splitter(std::string_view line, const std::map<std::string, std::string>& variables)
      : m_line(line), m_variables(variables) {}

  std::optional<std::vector<std::string>> split() {
    while (m_at < m_line.size()) {
      if (!take(m_line[m_at++])) return std::nullopt;
    }
    if (m_quoted) return std::nullopt;
    end_word();
    return std::move(m_words);
  }

 private:
  bool take(char c) {
    if (c == '"') {
      m_quoted = !m_quoted;
      m_word = m_word.value_or("");
      return true;
    }
    if (c == '$') return take_variable();
    if (!m_quoted && (c == ' ' || c == '\t')) {
      end_word();
      return true;
    }
    if (m_quoted ? !is_plain_in_quotes(c) : !is_plain(c)) return false;
    append(std::string(1, c));
    return true;
  }

  bool take_variable() {
    std::size_t const start = m_at;
    while (m_at < m_line.size() && (is_letter(m_line[m_at]) || (m_at > start && is_digit(m_line[m_at])))) ++m_at;
    auto const found = m_variables.find(std::string(m_line.substr(start, m_at - start)));
    // A shell would split a value with spaces again.
    if (found == m_variables.end() || !std::all_of(found->second.begin(), found->second.end(), is_plain)) return false;
    append(found->second);
    return true;
  }

  void append(const std::string& text) { m_word = m_word.value_or("") + text; }

  void end_word() {
    if (m_word) m_words.push_back(std::move(*m_word));
    m_word.reset();
  }

  std::string_view m_line;
  const std::map<std::string, std::string>& m_variables;
  std::size_t m_at = 0;
  bool m_quoted = false;
  std::optional<std::string> m_word;
  std::vector<std::string> m_words;
};

}  // namespace

std::optional<std::vector<std::string>> split_command(std::string_view line,
                                                      const std::map<std::string, std::string>& variables) {
  return Splitter(line, variables).split();
}

}  // namespace cuda_agent::build
