#include "build/step_run.hpp"

#include <algorithm>
#include <utility>

namespace cuda_agent::build {

StepRun::StepRun(std::vector<Step> steps, int parallel) : m_parallel(static_cast<std::size_t>(std::max(1, parallel))) {
  for (auto& step : steps) m_slots.push_back({std::move(step), State::waiting, nullptr, {}, {}});
}

std::optional<StepRun::End> StepRun::poll() {
  for (std::size_t i = 0; i < m_slots.size(); ++i) look_at(i);
  start_ready();
  std::size_t const failed = first_failed();
  auto const undecided = std::any_of(m_slots.begin(), m_slots.begin() + static_cast<std::ptrdiff_t>(failed),
                                     [](const Slot& slot) { return slot.state != State::succeeded; });
  if (undecided) return std::nullopt;
  if (failed == m_slots.size()) return End{};
  kill();
  return m_slots[failed].end;
}

void StepRun::kill() {
  for (auto& slot : m_slots) {
    if (!slot.work) continue;
    slot.work->kill();
    slot.output = slot.work->output();
    slot.work.reset();
  }
}

std::string StepRun::output() {
  std::string text;
  std::size_t const failed = first_failed();
  for (std::size_t i = 0; i < m_slots.size() && i <= failed; ++i) {
    text += m_slots[i].work ? m_slots[i].work->output() : m_slots[i].output;
  }
  return text;
}

void StepRun::look_at(std::size_t index) {
  auto& slot = m_slots[index];
  if (!slot.work) return;
  auto const ended = slot.work->poll();
  if (!ended) return;
  slot.output = slot.work->output();
  slot.work.reset();
  if (!*ended) {
    fail_step(index, {index, {}, ended->error(), false});
  } else if (!(*ended)->ok()) {
    fail_step(index, {index, **ended, std::nullopt, false});
  } else {
    slot.state = State::succeeded;
  }
}

// What comes after a step that failed would not have been run, and cannot change what is said.
void StepRun::start_ready() {
  for (std::size_t i = 0; i < first_failed(); ++i) {
    if (count(State::running) >= m_parallel) return;
    if (is_ready(m_slots[i])) start(i);
  }
}

void StepRun::start(std::size_t index) {
  auto& slot = m_slots[index];
  auto const command = slot.step.command();
  if (!command) return fail_step(index, {index, {}, std::nullopt, true});
  auto work = start_process(*command);
  if (!work) return fail_step(index, {index, {}, work.error(), false});
  slot.work = std::move(*work);
  slot.state = State::running;
}

void StepRun::fail_step(std::size_t index, End end) {
  m_slots[index].state = State::failed;
  m_slots[index].end = std::move(end);
}

bool StepRun::is_ready(const Slot& slot) const {
  return slot.state == State::waiting && std::all_of(slot.step.after.begin(), slot.step.after.end(),
                                                     [this](auto i) { return m_slots[i].state == State::succeeded; });
}

std::size_t StepRun::count(State state) const {
  return static_cast<std::size_t>(
      std::count_if(m_slots.begin(), m_slots.end(), [state](const Slot& slot) { return slot.state == state; }));
}

std::size_t StepRun::first_failed() const {
  auto const found =
      std::find_if(m_slots.begin(), m_slots.end(), [](const Slot& slot) { return slot.state == State::failed; });
  return static_cast<std::size_t>(found - m_slots.begin());
}

}  // namespace cuda_agent::build
