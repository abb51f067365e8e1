// The supervisor's end of a worker channel: one JSON object a message over a SOCK_SEQPACKET pair, split into packets
// of at most 32 KiB (first byte: 1 = more follows, 0 = last), descriptors by SCM_RIGHTS on the first packet.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "cuda_agent/error.hpp"
#include "util/deadline.hpp"
#include "util/fd.hpp"

namespace cuda_agent::exec {

class Child;

struct Message {
  std::string text;  ///< JSON, not yet parsed
  std::vector<util::Fd> fds;
  pid_t sender = 0;  ///< as seen from this pid namespace (SCM_CREDENTIALS); 0 = unknown
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

  /// Errors: timeout, interrupted, crash (the peer is gone). A message that was sent in part only when time was up
  /// closes the channel, since nothing that followed could be told from its rest. At most 16 descriptors.
  Result<void> send(const std::string& text, const std::vector<int>& fds, util::Deadline deadline);
  /// One whole message of at most `limit` bytes. Errors: timeout (what came so far is kept for the next call),
  /// interrupted, crash (peer closed or reset), crash with another message when the peer breaks the framing or the
  /// limit or sends more than 16 descriptors; a crash closes the channel and every descriptor that came.
  Result<Message> receive(std::size_t limit, util::Deadline deadline);

  /// The same for a peer that is `child`: its output is drained while waiting, so that it cannot stand still on a full
  /// pipe, and when it has ended the error is a crash that says how ("killed by signal 11 (SIGSEGV)"). A message that
  /// it sent before its end is still received.
  Result<void> send(const std::string& text, const std::vector<int>& fds, util::Deadline deadline, Child& child);
  Result<Message> receive(std::size_t limit, util::Deadline deadline, Child& child);

 private:
  Result<void> send_to(const std::string& text, const std::vector<int>& fds, util::Deadline deadline, Child* child);
  Result<Message> receive_from(std::size_t limit, util::Deadline deadline, Child* child);

  util::Fd m_socket;
  Message m_partial;
  bool m_in_message = false;
};

}  // namespace cuda_agent::exec
