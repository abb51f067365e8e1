#include "util/interrupt.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

namespace cuda_agent::util {

namespace {

std::atomic<int> g_signal{0};
std::atomic<int> g_event{-1};
std::atomic<bool> g_cancelled{false};
thread_local bool t_ignores_cancel = false;
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

extern "C" void on_signal(int signal) {
  int const saved = errno;
  g_signal.store(signal);
  std::uint64_t const one = 1;
  // The counter of an eventfd cannot fill up by signals, and there is nobody to tell if it did.
  [[maybe_unused]] ssize_t const written = ::write(g_event.load(), &one, sizeof one);
  errno = saved;
}

}  // namespace

void install_interrupt_handlers() {
  if (g_event.load() >= 0) return;
  g_event.store(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));

  struct sigaction action {};
  action.sa_handler = on_signal;
  sigfillset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: blocking calls shall come back
  for (int const signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    // Who starts us with SIGHUP or SIGINT ignored (nohup, a shell's `&`) means it.
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN && signal != SIGTERM) continue;
    ::sigaction(signal, &action, nullptr);
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, nullptr);
}

bool interrupted() noexcept { return g_signal.load() != 0 || (g_cancelled.load() && !t_ignores_cancel); }

bool signalled() noexcept { return g_signal.load() != 0; }

void cancel() noexcept {
  g_cancelled.store(true);
  std::uint64_t const one = 1;
  [[maybe_unused]] ssize_t const written = ::write(g_event.load(), &one, sizeof one);
}

void forget_cancel() noexcept {
  g_cancelled.store(false);
  std::uint64_t count = 0;
  if (g_signal.load() == 0) [[maybe_unused]]
    ssize_t const taken = ::read(g_event.load(), &count, sizeof count);
  // A signal between the two would have been taken with the rest.
  if (g_signal.load() != 0) on_signal(g_signal.load());
}

void ignore_cancel() noexcept { t_ignores_cancel = true; }

int interrupt_fd() noexcept { return g_event.load(); }

Error interrupted_error() {
  switch (g_signal.load()) {
    case SIGTERM:
      return {Outcome::interrupted, "stopped by SIGTERM"};
    case SIGHUP:
      return {Outcome::interrupted, "stopped by SIGHUP (the terminal was closed)"};
    default:
      return {Outcome::interrupted, "interrupted"};
  }
}

}  // namespace cuda_agent::util
