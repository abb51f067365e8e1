// The flags of compilers and linker, in one place.
#pragma once

#include <string>
#include <vector>

#include "build/architecture.hpp"
#include "build/extension.hpp"
#include "build/sources.hpp"
#include "build/toolchain.hpp"

namespace cuda_agent::build {

using Flags = std::vector<std::string>;

bool is_clang(const Compiler& compiler);

/// Definitions and include folders that every file of an extension gets, nvcc's too.
Flags common_flags(Target target, const Toolchain& toolchain, const Interpreter& interpreter);

/// For C++ sources: -O3, and on the CPU target for this machine's processor; bindings -O0, since they only pass
/// tensors on and are mostly templates.
Flags host_flags(SourceKind kind, Target target, const Toolchain& toolchain, const Interpreter& interpreter);

/// As the published script: -O3 --use_fast_math, torch's own definitions; and `-Xptxas -v` for the report.
Flags nvcc_flags(const Architecture& architecture, const Toolchain& toolchain, const Interpreter& interpreter);

/// What follows the objects.
Flags link_flags(Target target, const Toolchain& toolchain, const Interpreter& interpreter);

}  // namespace cuda_agent::build
