#include "policy/objects_names.hpp"

#include <cctype>
#include <cstdlib>
#include <memory>

#include <cxxabi.h>

namespace cuda_agent::policy {

namespace {

constexpr std::string_view anonymous = "(anonymous namespace)";
constexpr std::string_view operator_word = "operator";

bool is_identifier(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The end of a bracket that opens at `at`. "->" in a type closes nothing.
std::size_t after_bracket(std::string_view text, std::size_t at) {
  int depth = 0;
  for (; at < text.size(); ++at) {
    char const c = text[at];
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}' || (c == '>' && text[at - 1] != '-')) --depth;
    if (depth == 0) return at + 1;
  }
  return text.size();
}

class NameReader {
 public:
  explicit NameReader(std::string_view text) : m_text(text) {}

  std::string read() {
    while (m_at < m_text.size() && step()) {
    }
    return m_name;
  }

 private:
  bool starts(std::string_view word) const { return m_text.substr(m_at, word.size()) == word; }

  // False at the parameters, where the name ends.
  bool step() {
    char const c = m_text[m_at];
    if (starts(anonymous)) {
      take(anonymous.size());
    } else if (starts(operator_word) && (m_name.empty() || !is_identifier(m_name.back())) &&
               (m_at + operator_word.size() >= m_text.size() || !is_identifier(m_text[m_at + operator_word.size()]))) {
      take_operator();
    } else if (c == '(') {
      // In "decltype (...) f(int)" the first bracket belongs to the return type.
      if (!ends_with("decltype")) return false;
      m_at = after_bracket(m_text, m_at);
    } else if (c == '<' || c == '[') {
      m_at = after_bracket(m_text, m_at);
    } else if (c == ' ') {
      // What came before was the return type, unless template arguments follow ("operator<< <int>").
      ++m_at;
      if (m_at < m_text.size() && m_text[m_at] != '<' && m_text[m_at] != '(') m_name.clear();
    } else {
      take(1);
    }
    return true;
  }

  void take(std::size_t count) {
    m_name += m_text.substr(m_at, count);
    m_at += count;
  }

  bool ends_with(std::string_view word) const {
    return m_name.size() >= word.size() && m_name.compare(m_name.size() - word.size(), word.size(), word) == 0;
  }

  void take_operator() {
    take(operator_word.size());
    if (starts("()") || starts("[]")) {
      take(2);
    } else if (starts(" ")) {  // operator new, operator delete[], operator int
      while (m_at < m_text.size() && m_text[m_at] != '(') take(1);
    } else {
      while (m_at < m_text.size() && std::string_view("<>=!+-*/%^&|~,").find(m_text[m_at]) != std::string_view::npos) {
        take(1);
      }
    }
  }

  std::string_view m_text;
  std::size_t m_at = 0;
  std::string m_name;
};

}  // namespace

std::string demangled(std::string_view symbol) {
  std::string name(symbol);
  // Others are no mangled names, although "f" would read as "float".
  if (symbol.substr(0, 2) != "_Z") return name;
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

std::string qualified_name(std::string_view demangled) {
  for (std::string_view const thunk : {"non-virtual thunk to ", "virtual thunk to ", "covariant return thunk to "}) {
    if (demangled.substr(0, thunk.size()) == thunk) return qualified_name(demangled.substr(thunk.size()));
  }
  for (std::string_view const kept :
       {"vtable for ", "construction vtable for ", "VTT for ", "typeinfo for ", "typeinfo name for ",
        "guard variable for ", "TLS wrapper function for ", "TLS init function for ", "reference temporary #"}) {
    if (demangled.substr(0, kept.size()) == kept) {
      return std::string(kept) + NameReader(demangled.substr(kept.size())).read();
    }
  }
  return NameReader(demangled).read();
}

}  // namespace cuda_agent::policy
