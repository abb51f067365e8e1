// The text of objects.json, built in: the rules are the program's own and need no file at run time.
#pragma once

#include <string_view>

namespace cuda_agent::policy {

extern const std::string_view objects_json;

}  // namespace cuda_agent::policy
