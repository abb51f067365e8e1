#include "cli/console.hpp"

#include <cerrno>
#include <iostream>

#include <fcntl.h>
#include <unistd.h>

#include "cli/progress_printers.hpp"
#include "util/environment.hpp"

namespace cuda_agent::cli {

namespace {

bool is_capable_terminal(int descriptor) {
  auto const term = util::get_env("TERM");
  return ::isatty(descriptor) == 1 && term && !term->empty() && *term != "dumb";
}

}  // namespace

Console real_console() {
  auto const no_colour = util::get_env("NO_COLOR").value_or("");
  return {std::cout, std::cerr, no_colour.empty() && is_capable_terminal(STDOUT_FILENO),
          is_capable_terminal(STDERR_FILENO)};
}

void open_standard_descriptors() {
  for (int const descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one. It stays open on purpose, and for children too.
    auto const opened = ::open("/dev/null", O_RDWR);
    if (opened > STDERR_FILENO) ::close(opened);
  }
}

bool print(Console& console, std::string_view text) {
  errno = 0;
  console.out << text << std::flush;
  return console.out.good();
}

namespace {

class ResidentProgress final : public util::Progress {
 public:
  explicit ResidentProgress(util::Progress& client) : m_client(client) {}
  void step(std::string_view text) override { m_client.step(text); }
  void note(std::string_view text) override { m_client.note(text); }

 private:
  util::Progress& m_client;
};

}  // namespace

std::unique_ptr<util::Progress> make_progress(Console& console, Verbosity verbosity) {
  if (console.resident != nullptr) return std::make_unique<ResidentProgress>(console.resident->progress);
  if (verbosity == Verbosity::quiet) return std::make_unique<util::SilentProgress>();
  if (console.updating) return std::make_unique<UpdatingProgress>(console.err);
  return std::make_unique<PlainProgress>(console.err);
}

}  // namespace cuda_agent::cli
