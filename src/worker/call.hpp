// One timed call on the CPU: everything between the supervisor's "go" and the worker's answer, in C++.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <Python.h>

#include "arenas.hpp"
#include "capture.hpp"
#include "link.hpp"

namespace worker {

/// Where the K calls of one timed call put what they return: K regions of `room` bytes, one after the other.
struct OutputRoom {
  int arena = -1;
  std::uint64_t at = 0;
  std::uint64_t room = 0;  ///< bytes for each call
};

/// model(*arguments), a new reference or null with a Python exception set; its operators are counted.
PyObject* call_model(PyObject* model, PyObject* arguments);

/// The same calls and stores without a clock, before a timed one: it finds memory, page tables and code as the timed
/// call of every other arm finds its own. Throws what the model raised.
void warm_call(const Arenas& arenas, PyObject* model, const std::vector<PyObject*>& arguments, const OutputRoom& output,
               const Node& null_output);
/// The JSON of K results: {"outputs":[…],"needed":bytes,"fits":bool}. With `null_output` that one stands for each.
std::string described_results(const std::vector<Node>& results, const Node* null_output, bool fits,
                              std::uint64_t needed);

/// Tells the supervisor that it is armed, waits for go, calls `model(*arguments[k])` for each k, copies what comes
/// back into the output arena after each, and answers with a mark. Then returns the JSON that describes the K results:
/// {"outputs":[…],"needed":bytes,"fits":bool}. When a result does not fit, nothing more is copied. `model` None: the
/// null arm, which stores `null_output` K times. A Python exception of the model propagates after the answer mark
/// has been sent.
std::string timed_call(Link& link, const Arenas& arenas, PyObject* model, const std::vector<PyObject*>& arguments,
                       const OutputRoom& output, const Node& null_output);

}  // namespace worker
