#include "judge/processors.hpp"

#include <charconv>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>

#include <sched.h>
#include <spdlog/fmt/fmt.h>

namespace cuda_agent::judge {

std::optional<ProcessorClaim> ProcessorClaim::take(int threads) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (threads < 1 || ::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::nullopt;
  if (CPU_COUNT(&allowed) <= threads) return std::nullopt;  // one is for the supervisor
  ProcessorClaim claim;
  // From the last: the first is the one that most interrupts go to.
  for (int number = CPU_SETSIZE - 1; number >= 0 && static_cast<int>(claim.m_processors.size()) < threads; --number) {
    if (!CPU_ISSET(static_cast<std::size_t>(number), &allowed)) continue;
    auto lock =
        util::FileLock::acquire(std::filesystem::path("/tmp") / fmt::format("cuda-agent-processor-{}.lock", number),
                                "cuda-agent", util::Deadline::after(std::chrono::seconds(0)), {});
    if (!lock) continue;
    claim.m_processors.push_back(number);
    claim.m_locks.push_back(std::move(*lock));
  }
  if (static_cast<int>(claim.m_processors.size()) < threads) return std::nullopt;
  return claim;
}

std::string ProcessorClaim::in_words() const { return fmt::format("{}", fmt::join(m_processors, ",")); }

namespace {

void move_threads(pid_t process, const cpu_set_t& wanted) {
  std::error_code problem;  // the process may end at any moment
  std::filesystem::directory_iterator thread(fmt::format("/proc/{}/task", process), problem);
  for (; !problem && thread != std::filesystem::directory_iterator(); thread.increment(problem)) {
    auto const name = thread->path().filename().string();
    pid_t number = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), number).ec != std::errc()) continue;
    (void)::sched_setaffinity(number, sizeof wanted, &wanted);
  }
}

}  // namespace

void ProcessorClaim::confine(pid_t process) const {
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (int const number : m_processors) CPU_SET(static_cast<std::size_t>(number), &wanted);
  move_threads(process, wanted);
}

void ProcessorClaim::let_go(pid_t process) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) == 0) move_threads(process, allowed);
}

}  // namespace cuda_agent::judge
