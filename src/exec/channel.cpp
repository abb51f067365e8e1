#include "exec/channel.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>

#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec/child.hpp"
#include "util/interrupt.hpp"

namespace cuda_agent::exec {

namespace {

constexpr std::size_t c_packet = std::size_t{32} * 1024;
constexpr std::size_t c_most_fds = 16;
// Room for one descriptor too many, so that a peer that sends more is seen and not merely cut off.
constexpr std::size_t c_control = CMSG_SPACE((c_most_fds + 1) * sizeof(int)) + CMSG_SPACE(sizeof(ucred));

struct Packet {
  std::size_t size = 0;
  bool truncated = false;
  std::vector<util::Fd> fds;
  pid_t sender = 0;
};

std::string reason(int error) { return std::generic_category().message(error); }

Error gone(std::string_view how, Child* child) {
  // Its end and the end of its socket come at nearly the same time; wait a moment to be able to say how it ended.
  if (child != nullptr) {
    auto const status = child->wait(util::Deadline::after(std::chrono::milliseconds(200)));
    if (status) return {Outcome::crash, fmt::format("the worker ended: {}", status->describe())};
    if (status.error().outcome == Outcome::environment_error) return status.error();
  }
  return {Outcome::crash, fmt::format("the worker is gone: {}", how)};
}

// Returns when the socket may be ready. Drains the child meanwhile; none when the wait is over, with why.
std::optional<Error> wait_for(int socket, short events, util::Deadline deadline, Child* child) {
  while (true) {
    if (util::interrupted()) return util::interrupted_error();
    if (deadline.expired()) return Error(Outcome::timeout, "the worker did not answer in time");
    std::array<pollfd, 4> news{{{socket, events, 0},
                                {util::interrupt_fd(), POLLIN, 0},
                                {child == nullptr ? -1 : child->output_fd(), POLLIN, 0},
                                {child == nullptr ? -1 : child->exit_fd(), POLLIN, 0}}};
    ::poll(news.data(), news.size(), deadline.remaining_ms());
    if (child != nullptr) child->drain();
    if (news[0].revents != 0) return std::nullopt;
    if (news[3].revents == 0) continue;
    // What it sent before its end is still in the socket, and may have come after poll had looked there.
    if (::poll(news.data(), 1, 0) > 0) return std::nullopt;
    return gone("it has ended", child);
  }
}

void take_control(msghdr& header, Packet& packet) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_RIGHTS) {
      std::size_t const count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
        packet.fds.emplace_back(fd);
      }
    } else if (part->cmsg_type == SCM_CREDENTIALS) {
      ucred credentials{};
      std::memcpy(&credentials, CMSG_DATA(part), sizeof credentials);
      packet.sender = credentials.pid;
    }
  }
}

// One packet into `buffer`; none when there is none (errno EAGAIN) or on an error.
std::optional<Packet> receive_packet(int socket, std::array<char, c_packet>& buffer) {
  alignas(cmsghdr) std::array<char, c_control> control{};
  iovec part{buffer.data(), buffer.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return std::nullopt;
  Packet packet;
  packet.size = static_cast<std::size_t>(got);
  packet.truncated = (static_cast<unsigned>(header.msg_flags) & unsigned{MSG_TRUNC | MSG_CTRUNC}) != 0;
  take_control(header, packet);
  return packet;
}

// 0 or errno.
int send_packet(int socket, char flag, std::string_view payload, const std::vector<int>& fds) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(c_most_fds * sizeof(int))> control{};
  std::array<iovec, 2> parts{{{&flag, 1}, {const_cast<char*>(payload.data()), payload.size()}}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    if (cmsghdr* const rights = CMSG_FIRSTHDR(&header); rights != nullptr) {
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), fds.data(), fds.size() * sizeof(int));
    }
  }
  while (::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// What is wrong with a packet as a part of a message; empty when nothing is.
std::string broken(const Packet& packet, char flag, bool first, std::size_t so_far, std::size_t limit) {
  if (packet.truncated) return fmt::format("a packet of more than {} bytes or too many descriptors", c_packet);
  if (flag != '\0' && flag != '\1') return fmt::format("a packet that begins with byte {}", static_cast<int>(flag));
  if (packet.fds.size() > c_most_fds) return fmt::format("more than {} descriptors", c_most_fds);
  if (!first && !packet.fds.empty()) return "descriptors in the middle of a message";
  if (flag == '\1' && packet.size == 1) return "an empty packet in the middle of a message";
  if (so_far + packet.size - 1 > limit) return fmt::format("a message of more than {} bytes", limit);
  return {};
}

}  // namespace

Result<std::pair<Channel, util::Fd>> Channel::make() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail(Outcome::environment_error, fmt::format("cannot make a socket pair: {}", reason(errno)),
                {"raise the limit on open files (ulimit -n)"});
  }
  util::Fd ours(ends[0]);
  util::Fd theirs(ends[1]);
  int const on = 1;
  if (::setsockopt(ours.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0) {
    return fail(Outcome::environment_error, fmt::format("cannot ask for credentials on a socket: {}", reason(errno)));
  }
  return std::pair(Channel(std::move(ours)), std::move(theirs));
}

Result<void> Channel::send(const std::string& text, const std::vector<int>& fds, util::Deadline deadline) {
  return send_to(text, fds, deadline, nullptr);
}

Result<void> Channel::send(const std::string& text, const std::vector<int>& fds, util::Deadline deadline,
                           Child& child) {
  return send_to(text, fds, deadline, &child);
}

Result<Message> Channel::receive(std::size_t limit, util::Deadline deadline) {
  return receive_from(limit, deadline, nullptr);
}

Result<Message> Channel::receive(std::size_t limit, util::Deadline deadline, Child& child) {
  return receive_from(limit, deadline, &child);
}

Result<void> Channel::send_to(const std::string& text, const std::vector<int>& fds, util::Deadline deadline,
                              Child* child) {
  if (!open()) return fail(Outcome::crash, "the channel to the worker is closed");
  if (fds.size() > c_most_fds) {
    return fail(Outcome::internal_error,
                fmt::format("{} descriptors in one message, {} can be sent", fds.size(), c_most_fds));
  }
  std::string_view rest = text;
  bool first = true;
  do {
    std::string_view const payload = rest.substr(0, c_packet - 1);
    char const more = payload.size() < rest.size() ? '\1' : '\0';
    int const error = send_packet(fd(), more, payload, first ? fds : std::vector<int>{});
    if (error == 0) {
      rest.remove_prefix(payload.size());
      first = false;
    } else if (error == EAGAIN) {
      if (auto stop = wait_for(fd(), POLLOUT, deadline, child)) {
        if (!first) close();
        return fail(std::move(*stop));
      }
    } else if (error == EPIPE || error == ECONNRESET) {
      close();
      return fail(gone("it has closed its channel", child));
    } else {
      close();
      return fail(Outcome::internal_error, fmt::format("cannot send to the worker: {}", reason(error)));
    }
  } while (first || !rest.empty());
  return {};
}

Result<Message> Channel::receive_from(std::size_t limit, util::Deadline deadline, Child* child) {
  if (!open()) return fail(Outcome::crash, "the channel to the worker is closed");
  auto const give_up = [this](Error error) {
    close();
    m_partial = {};
    m_in_message = false;
    return fail(std::move(error));
  };
  std::array<char, c_packet> buffer;  // NOLINT(*-member-init): filled by recvmsg
  while (true) {
    auto packet = receive_packet(fd(), buffer);
    if (!packet && errno == EAGAIN) {
      if (auto stop = wait_for(fd(), POLLIN, deadline, child)) {
        if (stop->outcome == Outcome::timeout || stop->outcome == Outcome::interrupted) return fail(std::move(*stop));
        return give_up(std::move(*stop));
      }
      continue;
    }
    // A packet of no bytes looks like the end of the stream, and no good peer sends one.
    if (!packet || packet->size == 0) return give_up(gone("it has closed its channel", child));

    std::string const problem = broken(*packet, buffer[0], !m_in_message, m_partial.text.size(), limit);
    if (!problem.empty()) {
      return give_up({Outcome::crash, fmt::format("the worker broke the channel's rules: it sent {}", problem)});
    }
    if (!m_in_message) m_partial.fds = std::move(packet->fds);
    m_partial.sender = packet->sender;
    m_partial.text.append(buffer.data() + 1, packet->size - 1);
    m_in_message = buffer[0] == '\1';
    if (!m_in_message) return std::exchange(m_partial, Message{});
  }
}

}  // namespace cuda_agent::exec
