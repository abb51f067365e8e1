// How progress looks. Both printers may be called from several threads.
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <mutex>
#include <string>
#include <string_view>

#include "util/progress.hpp"

namespace cuda_agent::cli {

/// One line a step, for files and pipes. A step that repeats the one before is not printed again.
class PlainProgress final : public util::Progress {
 public:
  explicit PlainProgress(std::ostream& out) : m_out(out) {}
  void step(std::string_view text) override;
  void note(std::string_view text) override;

 private:
  std::mutex m_mutex;
  std::ostream& m_out;
  std::string m_last;
};

/// One line that is rewritten, and cleared at the end; notes stay.
class UpdatingProgress final : public util::Progress {
 public:
  /// `columns` gives the width of the terminal; empty = ask the terminal on standard error.
  explicit UpdatingProgress(std::ostream& out, std::function<std::size_t()> columns = {});
  UpdatingProgress(const UpdatingProgress&) = delete;
  UpdatingProgress& operator=(const UpdatingProgress&) = delete;
  ~UpdatingProgress() override;
  void step(std::string_view text) override;
  void note(std::string_view text) override;

 private:
  std::mutex m_mutex;
  std::ostream& m_out;
  std::function<std::size_t()> m_columns;
  std::string m_line;
};

}  // namespace cuda_agent::cli
