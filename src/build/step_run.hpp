// The steps of one compilation, side by side where one does not need the other, with the words of one after the other.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "build/work.hpp"

namespace cuda_agent::build {

struct Step {
  std::string name;  ///< for a log
  /// Asked when the step starts. Nothing: what the steps before have made does not fit together.
  std::function<std::optional<exec::Command>()> command;
  std::vector<std::size_t> after;  ///< steps before it in the list that must have ended well
};

/// The list is the order in which a driver would run the steps, each after the one before, until one fails. What is
/// reported is what the driver would have shown: the output of the first one in the list that failed and of those
/// before it, in the order of the list, whenever they ended.
class StepRun {
 public:
  StepRun(std::vector<Step> steps, int parallel);

  struct End {
    std::optional<std::size_t> failed;  ///< none: all ended well
    exec::ExitStatus status;            ///< of the failed one
    std::optional<Error> error;         ///< it could not be started
    bool refused = false;               ///< it had no command
  };
  /// Never blocks. Once it has an answer, nothing runs any more.
  std::optional<End> poll();
  void kill();
  std::string output();

 private:
  enum class State { waiting, running, succeeded, failed };
  struct Slot {
    Step step;
    State state = State::waiting;
    std::unique_ptr<Work> work;
    std::string output;
    End end;
  };

  void look_at(std::size_t index);
  void start_ready();
  void start(std::size_t index);
  void fail_step(std::size_t index, End end);
  bool is_ready(const Slot& slot) const;
  std::size_t count(State state) const;
  std::size_t first_failed() const;

  std::vector<Slot> m_slots;
  std::size_t m_parallel;
};

}  // namespace cuda_agent::build
