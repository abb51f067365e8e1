// Where long work says what it is doing. The command line decides how it looks.
#pragma once

#include <string_view>

namespace cuda_agent::util {

class Progress {
 public:
  virtual ~Progress() = default;
  /// A step has begun, e.g. "compiling 3 of 4: kernels/axpby.cu". Replaces the line before on a terminal.
  virtual void step(std::string_view text) = 0;
  /// A line worth keeping (a warning, a fact that the user should know).
  virtual void note(std::string_view text) = 0;
};

class SilentProgress final : public Progress {
 public:
  void step(std::string_view) override {}
  void note(std::string_view) override {}
};

}  // namespace cuda_agent::util
