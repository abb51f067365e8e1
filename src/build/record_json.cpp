#include "build/record_json.hpp"

#include <nlohmann/json.hpp>

namespace cuda_agent::build {

using nlohmann::json;

json to_json(const ObjectRecord& record) {
  json diagnostics = json::array();
  for (auto const& d : record.diagnostics) {
    diagnostics.push_back({{"file", d.file},
                           {"line", d.line},
                           {"column", d.column},
                           {"severity", d.severity},
                           {"message", d.message},
                           {"phase", d.phase}});
  }
  json kernels = json::array();
  for (auto const& k : record.kernels) {
    kernels.push_back({{"name", k.name},
                       {"architecture", k.architecture},
                       {"registers", k.registers},
                       {"spill_stores", k.spill_stores},
                       {"spill_loads", k.spill_loads},
                       {"stack_frame", k.stack_frame},
                       {"shared_memory", k.shared_memory}});
  }
  return {{"diagnostics", std::move(diagnostics)},
          {"kernels", std::move(kernels)},
          {"seconds", record.seconds},
          {"sha256", record.sha256}};
}

ObjectRecord record_from_json(const json& value) {
  ObjectRecord record;
  for (auto const& d : value.at("diagnostics")) {
    record.diagnostics.push_back(
        {d.at("file"), d.at("line"), d.at("column"), d.at("severity"), d.at("message"), d.at("phase")});
  }
  for (auto const& k : value.at("kernels")) {
    record.kernels.push_back({k.at("name"), k.at("architecture"), k.at("registers"), k.at("spill_stores"),
                              k.at("spill_loads"), k.at("stack_frame"), k.at("shared_memory")});
  }
  record.seconds = value.at("seconds");
  record.sha256 = value.at("sha256");
  return record;
}

}  // namespace cuda_agent::build
