#include "judge/candidate_seal.hpp"

#include <string>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "exec/sandbox.hpp"
#include "exec/seal.hpp"

namespace cuda_agent::judge {
namespace {

Result<nlohmann::json> seal(Worker& candidate, exec::Seal kind, bool devices, util::Deadline deadline) {
  auto const filter = exec::seal_filter(kind, number_among_others(candidate));
  if (!filter) return fail(filter.error());
  return candidate.request({{"op", "seal"}, {"filter", *filter}, {"devices", devices}}, {}, deadline,
                           "sealing the candidate's worker");
}

}  // namespace

std::optional<pid_t> number_among_others(const Worker& worker) {
  return exec::probe_sandbox().bubblewrap ? std::nullopt : std::optional(worker.pid());
}

Result<CandidateSeal> seal_processes(Worker& candidate, bool gpu, util::Deadline deadline) {
  auto const sealed = seal(candidate, exec::Seal::no_new_processes, gpu, deadline);
  if (!sealed) return fail(sealed.error());
  std::string why;
  for (auto const& one : sealed->value("why", nlohmann::json::array())) why += (why.empty() ? "" : "; ") + one.dump();
  CandidateSeal made;
  made.threads = sealed->value("threads", 0);
  auto const note = [&](const char* name, bool holds, const char* what) {
    made.protections.push_back({name, holds, holds ? what : why});
  };
  note("system-call filter", sealed->value("filter", false),
       "seccomp in the candidate's worker: no program is executed, no process made, none traced");
  if (gpu) {
    note("device nodes", sealed->value("devices", false),
         "landlock in every thread of the candidate's worker: no GPU can be opened any more, so no second context "
         "made");
  }
  return made;
}

Result<Protection> seal_threads(Worker& candidate, int before, util::Deadline deadline) {
  auto const sealed = seal(candidate, exec::Seal::no_new_threads, false, deadline);
  if (!sealed) return fail(sealed.error());
  return Protection{"no new threads", sealed->value("filter", false),
                    fmt::format("seccomp in the candidate's worker, from its warm-up on; {} threads when it was "
                                "sealed, {} after the warm-up",
                                before, sealed->value("threads", 0))};
}

}  // namespace cuda_agent::judge
