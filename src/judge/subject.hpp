// What a candidate's worker is told of task and candidate, and the making of ModelNew with it.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "cuda_agent/error.hpp"
#include "judge/exchange.hpp"
#include "judge/judge.hpp"
#include "judge/verify.hpp"
#include "judge/worker.hpp"

namespace cuda_agent::judge {

struct Subject {
  nlohmann::json load = nlohmann::json::object();  ///< the request, without the arena of constructor values
  nlohmann::json weights = nullptr;                ///< the request, without the arena; null: none are copied
  nlohmann::json state_names = nlohmann::json::array();
  std::uint64_t init_bytes = 0;   ///< of the constructor values
  std::uint64_t state_bytes = 0;  ///< of the weights
};

/// `task`: the reference worker's description of it; `folder`: the candidate's as its worker sees it. Errors:
/// internal_error for a description of another form.
Result<Subject> subject_of(const nlohmann::json& task, const std::string& folder, std::uint64_t seed,
                           Contract contract);

/// Has the candidate's worker import model_new.py, construct ModelNew and copy the weights. Returns the bytes of the
/// device that its process took meanwhile; 0 where that is not told. Errors: the candidate's.
Result<std::int64_t> construct(Exchange& exchange, Worker& candidate, const Subject& subject, const CallLimits& limits);

}  // namespace cuda_agent::judge
