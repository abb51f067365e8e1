// The Python program behind task_reader.hpp.
#pragma once

#include <string_view>

namespace cuda_agent::cli {

/// argv: task file, kernel name. Prints one JSON object: {"model_new": text} or {"error": sentence}.
std::string_view task_reader_script();

}  // namespace cuda_agent::cli
