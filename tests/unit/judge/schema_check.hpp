// Enough of JSON Schema 2020-12 to check verdicts against docs/verdict.schema.json without a package.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace cuda_agent::tests {

/// What is wrong with `value`, one line each; empty when it conforms. A keyword that is not known here is reported, so
/// that the schema cannot use one unchecked.
std::vector<std::string> schema_errors(const nlohmann::json& schema, const nlohmann::json& value);

}  // namespace cuda_agent::tests
