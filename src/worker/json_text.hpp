// Strings as JSON text. Python's json module reads and writes everything else of the protocol.
#pragma once

#include <cstdio>
#include <string>

namespace worker {

inline std::string json_string(const std::string& raw) {
  std::string out = "\"";
  for (char const c : raw) {
    auto const byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace worker
