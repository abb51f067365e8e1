#include "call.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>

#include <pybind11/pybind11.h>

#include "witness.hpp"

namespace py = pybind11;

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

PyObject* call_model(PyObject* model, PyObject* arguments) {
  Watching const operators;
  return PyObject_Call(model, arguments, nullptr);
}

std::string described_results(const std::vector<Node>& results, const Node* null_output, bool fits,
                              std::uint64_t needed) {
  std::string text =
      "{\"fits\":" + std::string(fits ? "true" : "false") + ",\"needed\":" + std::to_string(needed) + ",\"outputs\":[";
  for (std::size_t k = 0; k < results.size(); ++k) {
    Node const& result = null_output != nullptr ? *null_output : results[k];
    text += (k == 0 ? "" : ",") + (result.kind.empty() ? std::string("null") : describe(result));
  }
  return text + "]}";
}

namespace {

/// What the calls of one request came to.
struct Outcomes {
  std::vector<Node> results;  ///< described, their tensors released
  std::uint64_t needed = 0;   ///< bytes of the largest result
  bool fits = true;
};

/// Calls the model on each argument tuple and stores each result in its room. Stops at the first that does not fit.
void run(const Arenas& arenas, PyObject* model, const std::vector<PyObject*>& arguments, const OutputRoom& output,
         const Node& null_output, Outcomes& outcomes) {
  std::size_t const calls = arguments.size();
  char* const room = output.room == 0 ? nullptr
                                      : static_cast<char*>(arenas.address(
                                            output.arena, output.at, output.room * static_cast<std::uint64_t>(calls)));
  bool const null = model == Py_None;
  for (std::size_t k = 0; k < calls && outcomes.fits; ++k) {
    py::object value;
    if (!null) {
      value = py::reinterpret_steal<py::object>(call_model(model, arguments[k]));
      if (!value) {
        throw py::error_already_set();
      }
      outcomes.results[k] = capture(value.ptr());
    }
    Node const& result = null ? null_output : outcomes.results[k];
    std::uint64_t const bytes = bytes_needed(result);
    outcomes.needed = std::max(outcomes.needed, bytes);
    outcomes.fits = bytes <= output.room;
    if (outcomes.fits && bytes > 0) {
      store(result, room + k * output.room, false);
    }
    release(outcomes.results[k]);
  }
}

}  // namespace

void warm_call(const Arenas& arenas, PyObject* model, const std::vector<PyObject*>& arguments, const OutputRoom& output,
               const Node& null_output) {
  Outcomes outcomes;
  outcomes.results.resize(arguments.size());
  run(arenas, model, arguments, output, null_output, outcomes);
}

std::string timed_call(Link& link, const Arenas& arenas, PyObject* model, const std::vector<PyObject*>& arguments,
                       const OutputRoom& output, const Node& null_output) {
  std::size_t const calls = arguments.size();
  bool const null = model == Py_None;
  Outcomes outcomes;
  outcomes.results.resize(calls);

  link.send_mark('A');
  wait_for_go(link);
  // Whatever happens from here on, the answer mark goes out: the supervisor's clock waits for it.
  std::exception_ptr failure;
  try {
    run(arenas, model, arguments, output, null_output, outcomes);
  } catch (...) {
    failure = std::current_exception();
  }
  link.send_mark('D');

  if (failure) {
    std::rethrow_exception(failure);
  }
  return described_results(outcomes.results, null ? &null_output : nullptr, outcomes.fits, outcomes.needed);
}

}  // namespace worker
