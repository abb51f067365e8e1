// The other end of a channel, as a program that the tests start: speaks the framing over descriptor 3.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr int c_channel = 3;
constexpr std::size_t c_payload = std::size_t{32} * 1024 - 1;

void send_message(std::string_view text) {
  bool more = true;
  while (more) {
    std::string_view const payload = text.substr(0, c_payload);
    text.remove_prefix(payload.size());
    more = !text.empty();
    std::string packet(1, more ? '\1' : '\0');
    packet += payload;
    if (::send(c_channel, packet.data(), packet.size(), 0) < 0) std::_Exit(3);
  }
}

std::string receive_message() {
  std::string text;
  std::array<char, c_payload + 1> packet{};
  while (true) {
    ssize_t const got = ::recv(c_channel, packet.data(), packet.size(), 0);
    if (got <= 0) std::_Exit(4);
    text.append(packet.data() + 1, static_cast<std::size_t>(got) - 1);
    if (packet[0] == '\0') return text;
  }
}

void flood(std::size_t bytes) {
  std::string const line(4096, '#');
  for (; bytes > 0; bytes -= std::min(bytes, line.size())) {
    if (::write(1, line.data(), std::min(bytes, line.size())) < 0) std::_Exit(5);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view const mode = argc > 1 ? argv[1] : "";
  if (mode == "echo") {
    send_message(receive_message());
  } else if (mode == "flood") {
    flood(std::size_t{20} << 20U);
    send_message("done");
  } else if (mode == "flood-then-listen") {
    flood(std::size_t{20} << 20U);
    send_message(std::to_string(receive_message().size()));
  } else if (mode == "abort") {
    send_message("last words");
    std::abort();
  } else {
    std::fputs("exec_test_peer: unknown mode\n", stderr);
    return 2;
  }
  return 0;
}
