#include "link.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include <sys/socket.h>
#include <sys/uio.h>

namespace worker {
namespace {

constexpr std::size_t packet_bytes = 32 * 1024;
constexpr std::size_t max_descriptors = 16;

[[noreturn]] void gone(const char* what) {
  throw std::runtime_error(std::string("the supervisor's channel ended: ") + what + ": " + std::strerror(errno));
}

void take_descriptors(msghdr& header, std::vector<int>& fds) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    std::size_t const count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::size_t const old = fds.size();
    fds.resize(old + count);
    std::memcpy(fds.data() + old, CMSG_DATA(part), count * sizeof(int));
  }
}

}  // namespace

std::pair<std::string, std::vector<int>> Link::receive() {
  std::string text;
  std::vector<int> fds;
  std::vector<char> packet(packet_bytes + 1);
  for (;;) {
    iovec part{packet.data(), packet.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(max_descriptors * sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    ssize_t const got = ::recvmsg(m_fd, &header, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      gone("recvmsg");
    }
    take_descriptors(header, fds);
    text.append(packet.data() + 1, static_cast<std::size_t>(got) - 1);
    if (packet[0] == 0) {
      return {std::move(text), std::move(fds)};
    }
  }
}

void Link::send_packet(const char* data, std::size_t size) {
  for (;;) {
    ssize_t const sent = ::send(m_fd, data, size, MSG_NOSIGNAL);
    if (sent >= 0) {
      return;
    }
    if (errno != EINTR) {
      gone("send");
    }
  }
}

void Link::send(const std::string& text) {
  std::size_t at = 0;
  do {
    std::size_t const count = std::min(packet_bytes - 1, text.size() - at);
    std::string packet;
    packet.reserve(count + 1);
    packet.push_back(at + count < text.size() ? 1 : 0);
    packet.append(text, at, count);
    send_packet(packet.data(), packet.size());
    at += count;
  } while (at < text.size());
}

void Link::send_mark(char mark) {
  std::array<char, 2> const packet{0, mark};
  send_packet(packet.data(), packet.size());
}

}  // namespace worker
