// The bounded capture of what comes out of a pipe.
#pragma once

#include <cstddef>
#include <string_view>

#include "exec/child.hpp"
#include "util/fd.hpp"

namespace cuda_agent::exec {

class Capture {
 public:
  /// `pipe` is the non-blocking read end. Keeps the first `head` bytes and the last `tail` of the rest.
  Capture(util::Fd pipe, std::size_t head, std::size_t tail);

  /// Takes what is there, at most some MiB, so that an endless writer cannot hold the caller. Closes at end of file.
  void drain();
  int fd() const { return m_pipe.get(); }
  const Captured& captured() const { return m_captured; }

 private:
  void keep(std::string_view bytes);
  void cut_tail();

  util::Fd m_pipe;
  std::size_t m_head;
  std::size_t m_tail;
  Captured m_captured;
};

}  // namespace cuda_agent::exec
