// What client and server of a session say to each other: one JSON object a message.
//
// A client sends {"op": "ask", "arguments", "folder", "colour"} as soon as it is started, so that workers can start
// while it compiles, then {"op": "go", "began", "compiled"}, or closes. It gets {"place": N} while others are before
// it,
// {"step": …} and {"note": …}, {"err": …} for its standard error, {"out": …} for its standard output, and last {"code":
// N}.
// {"op": "status"} and {"op": "stop"} are answered by one object.
#pragma once

#include <cstddef>

namespace cuda_agent::session {

constexpr std::size_t message_limit = std::size_t{4} << 20;
/// Of a piece of standard output or error.
constexpr std::size_t piece_bytes = std::size_t{1} << 18;

}  // namespace cuda_agent::session
