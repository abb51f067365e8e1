// Names of symbols: as people read them, and as patterns match them.
#pragma once

#include <string>
#include <string_view>

namespace cuda_agent::policy {

/// As c++filt prints it; names that are not mangled stay as they are.
std::string demangled(std::string_view symbol);

/// A demangled name without return type, template arguments, parameters and ABI tags:
/// "float* at::TensorBase::data_ptr<float>() const" is at::TensorBase::data_ptr. What a compiler makes for a class
/// keeps its first words: "vtable for c10::Error".
std::string qualified_name(std::string_view demangled);

}  // namespace cuda_agent::policy
