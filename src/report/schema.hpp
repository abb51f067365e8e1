// The JSON Schema of the verdict, as it was when the binary was built (docs/verdict.schema.json).
#pragma once

#include <string_view>

namespace cuda_agent::report {

std::string_view verdict_schema();

}  // namespace cuda_agent::report
