// Text for people: untrusted bytes made harmless, "did you mean", and small helpers.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cuda_agent::util {

/// Somebody else's output as valid UTF-8 that a terminal and a JSON writer can take: control characters (C0 but \n
/// and \t, DEL, C1), characters that reorder a line (bidirectional controls) and bytes that are no UTF-8 become
/// visible \xNN. When the result is longer than `limit` bytes, it is a head, a line that counts the bytes left out,
/// and a tail, each of about limit / 2.
std::string escape_untrusted(std::string_view raw, std::size_t limit = 65536);

/// The known word nearest to `word` by edit distance (a swap of neighbours counts one), if it is near enough to be
/// what was meant: at most a third of the longer word's length, at least 1. Case is ignored.
std::optional<std::string> closest(std::string_view word, const std::vector<std::string>& known);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// Lines without their ends ("\n" or "\r\n"). A last line without an end counts; an empty text has none.
std::vector<std::string> split_lines(std::string_view text);

/// Without ASCII white space at both ends.
std::string trim(std::string_view text);

}  // namespace cuda_agent::util
