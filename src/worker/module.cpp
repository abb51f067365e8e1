// The Python face of the worker's C++ side. What decides a verdict lies with the supervisor; this module only runs
// models, moves memory that was lent to it, and says what came back.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "arenas.hpp"
#include "call.hpp"
#include "capture.hpp"
#include "cpu_allocator.hpp"
#include "cuda_call.hpp"
#include "link.hpp"
#include "seal.hpp"
#include "witness.hpp"

namespace py = pybind11;

namespace {

at::ScalarType scalar_type(py::handle dtype) {
  if (!THPDtype_Check(dtype.ptr())) {
    throw py::type_error("a torch.dtype is expected");
  }
  return reinterpret_cast<THPDtype*>(dtype.ptr())->scalar_type;
}

/// One worker: its channel, its arenas, its null output.
class Worker {
 public:
  explicit Worker(int fd) : m_link(fd) {}

  py::tuple receive() {
    std::pair<std::string, std::vector<int>> message;
    {
      py::gil_scoped_release const unlocked;
      message = m_link.receive();
    }
    return py::make_tuple(py::bytes(message.first), message.second);
  }

  void send(const std::string& text) { m_link.send(text); }
  void map(int id, int fd, std::uint64_t bytes, bool on_gpu) { m_arenas.map(id, fd, bytes, on_gpu); }
  void control(int fd) { m_gpu = worker::make_gpu_calls(fd); }
  void use_stream(int number) {
    if (!m_gpu) {
      throw std::runtime_error("there are streams on a GPU only, once it was prepared for timed calls");
    }
    m_gpu->use_stream(number);
  }
  void unmap(int id) { m_arenas.unmap(id); }
  at::Tensor bytes_of(int id, std::uint64_t at, std::uint64_t bytes) const { return m_arenas.bytes_of(id, at, bytes); }
  void set_null_output(const py::object& value) { m_null = worker::capture(value.ptr()); }

  void warm(const py::object& model, const std::vector<py::tuple>& arguments, int arena, std::uint64_t at,
            std::uint64_t room) {
    worker::warm_call(m_arenas, model.ptr(), pointers(arguments), worker::OutputRoom{arena, at, room}, m_null);
  }

  std::string call(const py::object& model, const std::vector<py::tuple>& arguments, int arena, std::uint64_t at,
                   std::uint64_t room, int launches, bool written, bool stored) {
    if (m_gpu) {
      return m_gpu->timed_call(m_link, m_arenas, model.ptr(), pointers(arguments), worker::OutputRoom{arena, at, room},
                               m_null, worker::NullWork{launches, written, stored});
    }
    return worker::timed_call(m_link, m_arenas, model.ptr(), pointers(arguments), worker::OutputRoom{arena, at, room},
                              m_null);
  }

 private:
  static std::vector<PyObject*> pointers(const std::vector<py::tuple>& arguments) {
    std::vector<PyObject*> raw;
    raw.reserve(arguments.size());
    for (py::tuple const& one : arguments) {
      raw.push_back(one.ptr());
    }
    return raw;
  }

  worker::Link m_link;
  worker::Arenas m_arenas;
  worker::Node m_null;
  std::unique_ptr<worker::GpuCalls> m_gpu;
};

}  // namespace

PYBIND11_MODULE(_cuda_agent, m) {
  m.doc() = "The C++ side of a cuda-agent worker.";
  m.def("cache_cpu_memory", &worker::cache_cpu_memory, "Freed memory of CPU tensors is kept and used again.");
  m.def("start_witness", &worker::start_witness, "From now on the operators that a model calls are counted.");
  m.def(
      "witnessed",
      [] {
        worker::Witnessed const seen = worker::witnessed();
        py::dict answer;
        answer["operators"] = seen.operators;
        answer["intact"] = seen.intact;
        return answer;
      },
      "The operators that models have called so far, and whether the recorder is still there.");
  m.def("hide", &worker::hide, "Keeps other processes of the same user from reading this one's memory.");
  m.def(
      "seal",
      [](const py::bytes& filter, bool devices) {
        worker::SealReport const report = worker::seal(filter, devices);
        py::dict answer;
        answer["filter"] = report.filter;
        answer["devices"] = report.devices;
        answer["why"] = report.why;
        answer["threads"] = report.threads;
        return answer;
      },
      py::arg("filter"), py::arg("devices"),
      "Gives up starting processes or threads (by an array of sock_filter) and, with `devices`, opening GPUs.");
  py::class_<Worker>(m, "Worker")
      .def(py::init<int>(), py::arg("fd"))
      .def("receive", &Worker::receive, "The next message: (bytes, list of descriptors).")
      .def("send", &Worker::send, py::arg("text"))
      .def("map", &Worker::map, py::arg("id"), py::arg("fd"), py::arg("bytes"), py::arg("on_gpu"))
      .def("control", &Worker::control, py::arg("fd"), "Takes the page by which calls on a GPU are started and ended.")
      .def("use_stream", &Worker::use_stream, py::arg("number"), "Timed calls are made on this stream; 0: the default.")
      .def("unmap", &Worker::unmap, py::arg("id"))
      .def("bytes_of", &Worker::bytes_of, py::arg("id"), py::arg("at"), py::arg("bytes"),
           "A uint8 tensor over part of an arena.")
      .def("set_null_output", &Worker::set_null_output, py::arg("value"),
           "What the null arm stores in place of a model's result.")
      .def("warm", &Worker::warm, py::arg("model"), py::arg("arguments"), py::arg("arena"), py::arg("at"),
           py::arg("room"), "The calls and stores of `call`, without a clock.")
      .def("call", &Worker::call, py::arg("model"), py::arg("arguments"), py::arg("arena"), py::arg("at"),
           py::arg("room"), py::arg("launches"), py::arg("written"), py::arg("stored"),
           "One timed call; on a GPU with so many kernels that do nothing before it, the null output written anew"
           " for each, or not stored.");
  m.def(
      "tensor_over",
      [](const at::Tensor& bytes, const py::object& dtype, std::int64_t offset, const std::vector<std::int64_t>& shape,
         const std::vector<std::int64_t>& stride) {
        return worker::tensor_over(bytes, scalar_type(dtype), offset, shape, stride);
      },
      py::arg("bytes"), py::arg("dtype"), py::arg("offset"), py::arg("shape"), py::arg("stride"));
}
