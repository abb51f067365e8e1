// Which kernels a candidate launches, and whose they are: seen in a process of its own that is never timed, while the
// baseline is being compiled.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "cuda_agent/error.hpp"
#include "cuda_agent/verdict.hpp"
#include "judge/exchange.hpp"
#include "judge/subject.hpp"
#include "judge/worker.hpp"
#include "util/deadline.hpp"

namespace cuda_agent::judge {

class KernelTrace {
 public:
  explicit KernelTrace(std::unique_ptr<Worker> worker) : m_worker(std::move(worker)) {}

  /// Gives the worker copies of the inputs of slot 0 as they are now, of constructor values and of weights, and has it
  /// begin. Errors: those of a request, or too little memory.
  Result<void> begin(Exchange& exchange, const Subject& subject, util::Deadline deadline);

  /// Waits for it, and ends its process. Those among `own` are the candidate's. Errors: the worker's, or
  /// environment_error: nothing can be traced on this machine.
  Result<std::vector<TracedKernel>> finish(const std::vector<KernelResources>& own, util::Deadline deadline);

 private:
  std::unique_ptr<Worker> m_worker;
  std::vector<std::unique_ptr<device::Arena>> m_lent;
};

/// The kernels in the answer to "trace"; names are escaped. Errors: environment_error where the sentinel was not seen,
/// crash where the answer has another form.
Result<std::vector<TracedKernel>> read_trace(const nlohmann::json& reply, const std::vector<KernelResources>& own);

}  // namespace cuda_agent::judge
