// REGISTER_BINDING(name, func): how a file in kernels/ adds its functions to the module `cuda_extension`.
//
//   static void bind_my_kernel(pybind11::module& m) { m.def("my_kernel", &my_kernel); }
//   REGISTER_BINDING(my_kernel, bind_my_kernel);
//
// `name` is an identifier, used once in a file; `func` is anything that can be called with a pybind11::module&.
// The list lives inside the extension (hidden visibility), so two extensions never see each other's entries.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include <pybind11/pybind11.h>

namespace cuda_agent_binding {

struct Entry {
  const char* name;
  void (*bind)(pybind11::module& m);
};

inline std::vector<Entry>& entries() {
  static std::vector<Entry> all;
  return all;
}

inline bool add(const char* name, void (*bind)(pybind11::module& m)) {
  entries().push_back(Entry{name, bind});
  return true;
}

/// Runs every registered function; a failure says whose it is.
inline void apply_all(pybind11::module& m) {
  for (const Entry& entry : entries()) {
    try {
      entry.bind(m);
    } catch (const std::exception& error) {
      throw std::runtime_error(std::string("REGISTER_BINDING(") + entry.name + "): " + error.what());
    }
  }
}

}  // namespace cuda_agent_binding

#define REGISTER_BINDING(name, func)                                        \
  [[maybe_unused]] static const bool cuda_agent_binding_registered_##name = \
      cuda_agent_binding::add(#name, [](pybind11::module& m) { func(m); })
