// ObjectRecord as JSON, as it lies beside an object in the cache.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "build/object_store.hpp"

namespace cuda_agent::build {

nlohmann::json to_json(const ObjectRecord& record);

/// Throws nlohmann::json::exception when `value` has another shape.
ObjectRecord record_from_json(const nlohmann::json& value);

}  // namespace cuda_agent::build
