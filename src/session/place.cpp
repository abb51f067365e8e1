#include "session/place.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sched.h>
#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/environment.hpp"
#include "util/files.hpp"
#include "util/hash.hpp"

namespace cuda_agent::session {
namespace fs = std::filesystem;
namespace {

/// What a session does depends on these, wherever it is asked from.
constexpr const char* variables[] = {"PATH",
                                     "HOME",
                                     "XDG_CACHE_HOME",
                                     "TMPDIR",
                                     "CUDA_HOME",
                                     "CUDA_PATH",
                                     "CUDA_VISIBLE_DEVICES",
                                     "LD_LIBRARY_PATH",
                                     "VIRTUAL_ENV",
                                     "CXX",
                                     "CC",
                                     "TORCH_CUDA_ARCH_LIST",
                                     "PYTHONPATH",
                                     "PYTHONHOME",
                                     "PYTHONUSERBASE",
                                     "PYENV_VERSION",
                                     "PYENV_ROOT",
                                     "CONDA_PREFIX",
                                     "NVCC_PREPEND_FLAGS",
                                     "NVCC_APPEND_FLAGS",
                                     "CUDA_DEVICE_ORDER",
                                     "CUDA_AGENT_PYTHON",
                                     "CUDA_AGENT_CACHE",
                                     "CUDA_AGENT_SANDBOX"};

std::string identity_of(const fs::path& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return {};
  return fmt::format("{}:{}:{}:{}.{}", file.string(), status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

fs::path folder_of_user() {
  if (auto const own = util::get_env("CUDA_AGENT_SESSIONS"); own && !own->empty()) return *own;
  // After `su` it may be another user's.
  struct stat status {};
  auto const runtime = util::get_env("XDG_RUNTIME_DIR").value_or("");
  if (runtime.starts_with('/') && ::stat(runtime.c_str(), &status) == 0 && status.st_uid == ::geteuid()) {
    return fs::path(runtime) / "cuda-agent";
  }
  return fs::path("/tmp") / fmt::format("cuda-agent-{}", ::getuid());
}

/// /tmp belongs to all: another's folder of that name, or a link, is refused.
Result<void> make_private(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(Outcome::environment_error,
                fmt::format("cannot make {} for sessions: {}", folder.string(), std::strerror(errno)));
  }
  struct stat status {};
  bool const own = ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
                   (status.st_mode & 077) == 0;
  if (own) return {};
  return fail(Outcome::environment_error,
              fmt::format("{} is not a folder of this user alone (mode 0700)", folder.string()),
              {"remove it, or set XDG_RUNTIME_DIR"});
}

bool fill(sockaddr_un& address, const fs::path& path) {
  std::string const text = path.string();
  if (text.size() >= sizeof address.sun_path) return false;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  return true;
}

Error socket_error(const fs::path& path, const char* doing) {
  return {Outcome::environment_error, fmt::format("cannot {} {}: {}", doing, path.string(), std::strerror(errno))};
}

Result<util::Fd> make_socket(sockaddr_un& address, const fs::path& path) {
  if (!fill(address, path)) {
    return fail(Outcome::environment_error, fmt::format("the path of a socket is too long: {}", path.string()),
                {"set XDG_RUNTIME_DIR to a shorter one"});
  }
  util::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return fail(socket_error(path, "make a socket for"));
  return socket;
}

}  // namespace

Result<Place> own_place() {
  Place place;
  place.folder = folder_of_user();
  if (!place.folder.is_absolute()) {
    return fail(Outcome::environment_error, "CUDA_AGENT_SESSIONS is no absolute path", {"set it to one, or unset it"});
  }
  if (auto made = make_private(place.folder); !made) return fail(made.error());
  std::string text = identity_of(util::own_executable());
  for (char const* const name : variables) text += fmt::format("\n{}={}", name, util::get_env(name).value_or(""));
  // How many threads a model gets follows from the processors that a command may use.
  cpu_set_t processors;
  CPU_ZERO(&processors);
  if (::sched_getaffinity(0, sizeof processors, &processors) == 0) {
    text.append(reinterpret_cast<const char*>(&processors), sizeof processors);
  }
  place.key = util::sha256_hex(text).substr(0, 16);
  if (sockaddr_un address{}; !fill(address, place.socket())) {
    return fail(Outcome::environment_error,
                fmt::format("the path of a socket would be too long: {}", place.socket().string()),
                {"set XDG_RUNTIME_DIR or CUDA_AGENT_SESSIONS to a shorter folder"});
  }
  return place;
}

std::vector<Place> all_places() {
  std::vector<Place> places;
  std::error_code error;
  auto const folder = folder_of_user();
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".socket") places.push_back({folder, it->path().stem().string()});
  }
  return places;
}

Result<util::Fd> connect_to(const Place& place) {
  sockaddr_un address{};
  auto socket = make_socket(address, place.socket());
  if (!socket) return fail(socket.error());
  if (::connect(socket->get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return fail(socket_error(place.socket(), "connect to"));
  }
  if (!is_own_user(socket->get())) {
    return fail(Outcome::environment_error, fmt::format("{} is another user's", place.socket().string()));
  }
  return std::move(*socket);
}

Result<util::Fd> listen_at(const Place& place) {
  sockaddr_un address{};
  auto socket = make_socket(address, place.socket());
  if (!socket) return fail(socket.error());
  (void)::unlink(place.socket().c_str());  // the lock is held: nobody listens there
  constexpr int waiting = 64;
  if (::bind(socket->get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket->get(), waiting) != 0) {
    return fail(socket_error(place.socket(), "listen at"));
  }
  return std::move(*socket);
}

bool is_own_user(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == ::geteuid();
}

}  // namespace cuda_agent::session
