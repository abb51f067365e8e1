// The worker's end of the channel to the supervisor: messages over a SOCK_SEQPACKET descriptor, split into packets of
// at most 32 KiB whose first byte says whether more follows (1) or not (0). Descriptors ride on the first packet.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace worker {

class Link {
 public:
  explicit Link(int fd) : m_fd(fd) {}

  /// Blocks until a whole message is there. Throws std::runtime_error when the supervisor has gone.
  std::pair<std::string, std::vector<int>> receive();
  void send(const std::string& text);
  /// A message that must cost as little as possible: one packet, one byte of payload.
  void send_mark(char mark);

  int fd() const { return m_fd; }

 private:
  void send_packet(const char* data, std::size_t size);
  int m_fd;
};

}  // namespace worker
