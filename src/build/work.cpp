#include "build/work.hpp"

#include <utility>

namespace cuda_agent::build {

namespace {

class Process final : public Work {
 public:
  explicit Process(std::unique_ptr<exec::Child> child) : m_child(std::move(child)) {}

  std::optional<Result<exec::ExitStatus>> poll() override {
    m_child->drain();
    if (auto const status = m_child->poll()) return *status;
    return std::nullopt;
  }
  void kill() override { m_child->kill(); }
  std::string output() override {
    m_child->drain();
    return m_child->output().text();
  }

 private:
  std::unique_ptr<exec::Child> m_child;
};

}  // namespace

Result<std::unique_ptr<Work>> start_process(const exec::Command& command) {
  auto child = exec::spawn(command);
  if (!child) return fail(child.error());
  return std::make_unique<Process>(std::move(*child));
}

}  // namespace cuda_agent::build
