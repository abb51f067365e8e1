#include "capture.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/autograd/python_variable.h>

#include "cuda_call.hpp"
#include "json_text.hpp"

namespace worker {
namespace {

constexpr int max_depth = 32;
constexpr std::size_t max_leaves = 4096;
constexpr std::uint64_t alignment = 256;

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

Node refused(std::string why) {
  Node node;
  node.kind = "refused";
  node.text = std::move(why);
  return node;
}

std::string type_name(PyObject* value) { return Py_TYPE(value)->tp_name; }

std::string text_of(PyObject* value) {
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &size) : nullptr;
  if (text == nullptr) {
    PyErr_Clear();
    return "?";
  }
  return {text, static_cast<std::size_t>(size)};
}

/// repr of an exact int, float or complex: builtin code only.
std::string plain_repr(PyObject* value) {
  PyObject* const text = PyObject_Repr(value);
  if (text == nullptr) {
    PyErr_Clear();
    return "?";
  }
  std::string result = text_of(text);
  Py_DECREF(text);
  return result;
}

/// An attribute of a *type* that was set in a class body, read without descriptors or metaclass code.
PyObject* type_attribute(PyTypeObject* type, const char* name) {
  PyObject* const key = PyUnicode_FromString(name);
  PyObject* const found = key == nullptr ? nullptr : _PyType_Lookup(type, key);
  Py_XDECREF(key);
  return found;  // borrowed
}

/// Elements from the first to one past the last that the strides reach.
std::int64_t extent(const at::Tensor& t) {
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < t.dim(); ++d) {
    if (t.size(d) == 0) {
      return 0;
    }
    last += (t.size(d) - 1) * t.stride(d);
  }
  return last + 1;
}

/// Whether storing the memory that the strides reach is smaller than storing every element: an expanded tensor.
bool keep_strides(const at::Tensor& t) { return extent(t) < t.numel(); }

std::uint64_t stored_bytes(const at::Tensor& t) {
  return static_cast<std::uint64_t>(keep_strides(t) ? extent(t) : t.numel()) * t.element_size();
}

std::vector<std::int64_t> contiguous_strides(const at::Tensor& t) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(t.dim()), 1);
  for (std::int64_t d = t.dim() - 2; d >= 0; --d) {
    strides[static_cast<std::size_t>(d)] =
        strides[static_cast<std::size_t>(d) + 1] * std::max<std::int64_t>(t.size(d + 1), 1);
  }
  return strides;
}

class Walker {
 public:
  Node walk(PyObject* value, int depth) {
    if (depth > max_depth) {
      return refused("nested more than " + std::to_string(max_depth) + " levels deep");
    }
    if (++m_nodes > max_leaves) {
      return refused("more than " + std::to_string(max_leaves) + " values");
    }
    if (Py_TYPE(value) == reinterpret_cast<PyTypeObject*>(THPVariableClass)) {
      return tensor(value);
    }
    if (value == Py_None) {
      return scalar("none", "None");
    }
    if (PyBool_Check(value)) {
      return scalar("bool", value == Py_True ? "True" : "False");
    }
    if (PyLong_CheckExact(value)) {
      return scalar("int", plain_repr(value));
    }
    if (PyFloat_CheckExact(value)) {
      return scalar("float", plain_repr(value));
    }
    if (PyComplex_CheckExact(value)) {
      return scalar("complex", plain_repr(value));
    }
    if (PyUnicode_CheckExact(value)) {
      return scalar("str", text_of(value));
    }
    if (PyTuple_Check(value)) {
      return tuple(value, depth);
    }
    if (PyList_CheckExact(value)) {
      Node node;
      node.kind = "list";
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value) && m_nodes <= max_leaves; ++i) {
        node.items.push_back(walk(PyList_GET_ITEM(value, i), depth + 1));
      }
      return node;
    }
    PyObject* const dataclass_fields = type_attribute(Py_TYPE(value), "__dataclass_fields__");
    if (dataclass_fields != nullptr && PyDict_CheckExact(dataclass_fields)) {
      return dataclass(value, dataclass_fields, depth);
    }
    if (PyDict_CheckExact(value) || is_ordered_dict(value)) {
      return dict(value, depth);
    }
    return refused("a value of type " + type_name(value));
  }

 private:
  static Node scalar(const char* kind, std::string text) {
    Node node;
    node.kind = kind;
    node.text = std::move(text);
    return node;
  }

  static bool is_ordered_dict(PyObject* value) { return PyODict_CheckExact(value) != 0; }

  static Node tensor(PyObject* value) {
    at::Tensor t = THPVariable_Unpack(value);
    if (!t.defined()) {
      return refused("an undefined tensor");
    }
    c10::DispatchKeySet const keys = t.key_set();
    // What computes when it is read, or holds no strided memory of its own, is no output.
    bool unusual = false;
    for (c10::DispatchKey const key : {c10::DispatchKey::Python, c10::DispatchKey::FuncTorchBatched,
                                       c10::DispatchKey::Functionalize, c10::DispatchKey::ZeroTensor}) {
      unusual = unusual || keys.has(key);
    }
    if (t.layout() != at::kStrided || unusual || t.is_meta() || t.is_nested() || t.is_quantized() || t.is_mkldnn()) {
      return refused(std::string("a tensor that is not plain and strided (") + c10::toString(keys) + ")");
    }
    c10::NoGradGuard const no_grad;
    if (t.is_conj() || t.is_neg()) {
      t = t.resolve_conj().resolve_neg();
    }
    Node node;
    node.kind = "tensor";
    node.dtype = t.scalar_type();
    node.device = t.device().str();
    node.shape = t.sizes().vec();
    node.stride = keep_strides(t) ? t.strides().vec() : contiguous_strides(t);
    node.bytes = stored_bytes(t);
    node.tensor = std::move(t);
    return node;
  }

  Node tuple(PyObject* value, int depth) {
    Node node;
    if (PyTuple_CheckExact(value)) {
      node.kind = "tuple";
    } else {
      PyObject* const fields = type_attribute(Py_TYPE(value), "_fields");
      bool const named =
          fields != nullptr && PyTuple_CheckExact(fields) && PyTuple_GET_SIZE(fields) == PyTuple_GET_SIZE(value);
      PyObject* const sequence_fields = type_attribute(Py_TYPE(value), "n_sequence_fields");
      if (!named && sequence_fields == nullptr) {
        return refused("a value of type " + type_name(value));
      }
      node.kind = named ? "fields" : "tuple";
      node.text = "namedtuple";
      for (Py_ssize_t i = 0; named && i < PyTuple_GET_SIZE(fields); ++i) {
        node.names.push_back(text_of(PyTuple_GET_ITEM(fields, i)));
      }
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value) && m_nodes <= max_leaves; ++i) {
      node.items.push_back(walk(PyTuple_GET_ITEM(value, i), depth + 1));
    }
    return node;
  }

  Node dict(PyObject* value, int depth) {
    Node node;
    node.kind = "dict";
    PyObject* key = nullptr;
    PyObject* item = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(value, &position, &key, &item) != 0 && m_nodes <= max_leaves) {
      if (!PyUnicode_CheckExact(key) && !PyLong_CheckExact(key)) {
        return refused("a dict whose key has type " + type_name(key));
      }
      node.names.push_back(PyUnicode_CheckExact(key) ? text_of(key) : plain_repr(key));
      node.items.push_back(walk(item, depth + 1));
    }
    return node;
  }

  Node dataclass(PyObject* value, PyObject* fields, int depth) {
    Node node;
    node.kind = "fields";
    node.text = "dataclass";
    PyObject* const attributes = PyObject_GenericGetDict(value, nullptr);
    if (attributes == nullptr) {
      PyErr_Clear();
      return refused("a dataclass without a __dict__ (" + type_name(value) + "); slots are not supported");
    }
    PyObject* key = nullptr;
    PyObject* field = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(fields, &position, &key, &field) != 0 && m_nodes <= max_leaves) {
      PyObject* const item = PyDict_GetItemWithError(attributes, key);
      if (item == nullptr) {
        PyErr_Clear();
        continue;  // a class variable or an unset field
      }
      node.names.push_back(text_of(key));
      node.items.push_back(walk(item, depth + 1));
    }
    Py_DECREF(attributes);
    return node;
  }

  std::size_t m_nodes = 0;
};

void copy_bytes(char* to, const char* from, std::uint64_t bytes) {
  constexpr std::int64_t grain = 1 << 20;
  at::parallel_for(0, static_cast<std::int64_t>(bytes), grain, [&](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

void store_tensor(const Node& node, char* to, bool on_gpu) {
  at::Tensor const& t = node.tensor;
  if (node.bytes == 0) {
    return;
  }
  if (on_gpu) {
    store_on_gpu(t, keep_strides(t), to, node.bytes);
    return;
  }
  if (keep_strides(t) || t.is_contiguous()) {
    copy_bytes(to, static_cast<const char*>(t.const_data_ptr()), node.bytes);
    return;
  }
  c10::NoGradGuard const no_grad;
  at::from_blob(to, t.sizes(), t.options().requires_grad(false)).copy_(t);
}

template <typename F>
void for_each_tensor(const Node& node, F&& visit) {
  if (node.kind == "tensor") {
    visit(node);
  }
  for (Node const& item : node.items) {
    for_each_tensor(item, visit);
  }
}

std::string list_of(at::IntArrayRef values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::to_string(values[i]);
  }
  return text + "]";
}

std::string dtype_name(at::ScalarType type) {
  PyObject* const dtype = reinterpret_cast<PyObject*>(torch::getTHPDtype(type));
  std::string name = plain_repr(dtype);  // "torch.float32"
  std::size_t const dot = name.find('.');
  return dot == std::string::npos ? name : name.substr(dot + 1);
}

void describe_into(const Node& node, std::uint64_t& offset, std::string& out) {
  out += "{\"kind\":" + json_string(node.kind);
  if (!node.text.empty()) {
    out += ",\"text\":" + json_string(node.text);
  }
  if (node.kind == "tensor") {
    out += ",\"dtype\":" + json_string(dtype_name(node.dtype)) + ",\"device\":" + json_string(node.device) +
           ",\"shape\":" + list_of(node.shape) + ",\"stride\":" + list_of(node.stride) +
           ",\"offset\":" + std::to_string(offset);
    offset += aligned(node.bytes);
  }
  if (!node.names.empty()) {
    out += ",\"names\":[";
    for (std::size_t i = 0; i < node.names.size(); ++i) {
      out += (i == 0 ? "" : ",") + json_string(node.names[i]);
    }
    out += "]";
  }
  if (node.kind == "tuple" || node.kind == "list" || node.kind == "dict" || node.kind == "fields") {
    out += ",\"items\":[";
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      if (i > 0) {
        out += ",";
      }
      describe_into(node.items[i], offset, out);
    }
    out += "]";
  }
  out += "}";
}

}  // namespace

Node capture(PyObject* value) { return Walker().walk(value, 0); }

std::uint64_t bytes_needed(const Node& node) {
  std::uint64_t total = 0;
  for_each_tensor(node, [&](const Node& leaf) { total += aligned(leaf.bytes); });
  return total;
}

void store(const Node& node, char* to, bool on_gpu) {
  for_each_tensor(node, [&](const Node& leaf) {
    store_tensor(leaf, to, on_gpu);
    to += aligned(leaf.bytes);
  });
}

void release(Node& node) {
  node.tensor.reset();
  for (Node& item : node.items) {
    release(item);
  }
}

std::string describe(const Node& node) {
  std::string out;
  std::uint64_t offset = 0;
  describe_into(node, offset, out);
  return out;
}

}  // namespace worker
