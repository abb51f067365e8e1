// The module `cuda_extension`: collects what the files in kernels/ register with REGISTER_BINDING.
// Part of the judge, not of the candidate: cuda-agent always builds its own copy of this file.
#include "binding_registry.h"

PYBIND11_MODULE(cuda_extension, module) { cuda_agent_binding::apply_all(module); }
