#include "call.hpp"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <stdexcept>

namespace worker {
namespace {

/// Waits for the packet that says go. The GIL is kept: nothing else of this interpreter has a reason to run.
void wait_for_go(Link& link) {
  auto const [text, fds] = link.receive();
  if (text != "go" || !fds.empty()) {
    throw std::runtime_error("expected go, got something else");
  }
}

}  // namespace

std::string timed_call(Link& link, const Arenas& arenas, PyObject* model, const std::vector<PyObject*>& arguments,
                       const OutputRoom& output, const Node& null_output) {
  std::size_t const calls = arguments.size();
  char* const room =
      output.room == 0
          ? nullptr
          : static_cast<char*>(arenas.address(output.arena, output.at, output.room * static_cast<std::uint64_t>(calls)));
  bool const null = model == Py_None;
  std::vector<Node> results(calls);
  std::uint64_t needed = 0;
  bool fits = true;
  bool raised = false;

  link.send_mark('A');
  wait_for_go(link);
  for (std::size_t k = 0; k < calls && fits; ++k) {
    PyObject* value = nullptr;
    if (!null) {
      value = PyObject_Call(model, arguments[k], nullptr);
      if (value == nullptr) {
        raised = true;
        break;
      }
      results[k] = capture(value);
    }
    Node const& result = null ? null_output : results[k];
    std::uint64_t const bytes = bytes_needed(result);
    needed = std::max(needed, bytes);
    fits = bytes <= output.room;
    if (fits && bytes > 0) {
      store(result, room + k * output.room);
    }
    release(results[k]);
    Py_XDECREF(value);
  }
  link.send_mark('D');

  if (raised) {
    throw pybind11::error_already_set();
  }
  std::string text = "{\"fits\":" + std::string(fits ? "true" : "false") + ",\"needed\":" + std::to_string(needed) +
                     ",\"outputs\":[";
  for (std::size_t k = 0; k < calls; ++k) {
    Node const& result = null ? null_output : results[k];
    text += (k == 0 ? "" : ",") + (result.kind.empty() ? std::string("null") : describe(result));
  }
  return text + "]}";
}

}  // namespace worker
