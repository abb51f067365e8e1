// The supervisor's end of a worker channel: one JSON object a message over a SOCK_SEQPACKET pair, split into packets
// of at most 32 KiB (first byte: 1 = more follows, 0 = last), descriptors by SCM_RIGHTS on the first packet.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cuda_agent/error.hpp"
#include "util/deadline.hpp"
#include "util/fd.hpp"

namespace cuda_agent::exec {

struct Message {
  std::string text;            ///< JSON, not yet parsed
  std::vector<util::Fd> fds;
  pid_t sender = 0;            ///< as seen from this pid namespace (SCM_CREDENTIALS); 0 = unknown
};

class Channel {
 public:
  /// A connected pair: ours, and the descriptor for the child (CLOEXEC; name it in Command::inherit).
  static Result<std::pair<Channel, util::Fd>> make();

  Channel() = default;
  explicit Channel(util::Fd socket) : m_socket(std::move(socket)) {}

  int fd() const { return m_socket.get(); }
  bool open() const { return static_cast<bool>(m_socket); }
  void close() { m_socket.reset(); }

  /// Errors: timeout, interrupted, crash (the peer is gone).
  Result<void> send(const std::string& text, const std::vector<int>& fds, util::Deadline deadline);
  /// One whole message of at most `limit` bytes. Errors: timeout, interrupted, crash (peer closed or reset),
  /// crash with another message when the peer breaks the framing or the limit.
  Result<Message> receive(std::size_t limit, util::Deadline deadline);

 private:
  util::Fd m_socket;
};

}  // namespace cuda_agent::exec
