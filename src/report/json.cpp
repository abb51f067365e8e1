#include "report/json.hpp"

#include <nlohmann/json.hpp>

namespace cuda_agent::report {

std::string render_json(const Verdict& verdict) {
  return to_json(verdict).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace cuda_agent::report
