// What a model returned, taken without running any of its code: a tree of plain containers, plain tensors and scalars.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <Python.h>

namespace worker {

struct Node {
  /// tensor, tuple, list, dict, fields (namedtuple, dataclass), none, bool, int, float, complex, str, refused
  std::string kind;
  std::string text;                ///< scalars: their value; fields: "namedtuple" or "dataclass"; refused: why
  std::vector<std::string> names;  ///< dict keys (as text), field names
  std::vector<Node> items;
  at::Tensor tensor;  ///< gone after `release`
  at::ScalarType dtype = at::kByte;
  std::string device;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> stride;  ///< elements, as stored
  std::uint64_t bytes = 0;           ///< as stored
};

/// Types are compared by identity: a subclass of Tensor, list or dict is refused, except a tuple with `_fields`
/// (namedtuple, struct sequence) and an instance of a dataclass, whose fields are read from its __dict__. No method of
/// the returned object is ever called.
Node capture(PyObject* value);

/// Bytes that `store` needs for one tree.
std::uint64_t bytes_needed(const Node& node);

/// Copies every tensor of the tree into memory at `to` (bytes_needed of room), 256-byte aligned, in order. Memory of a
/// GPU: enqueued on the legacy default stream.
void store(const Node& node, char* to, bool on_gpu);

/// Lets go of the tensors; what `describe` needs stays.
void release(Node& node);

/// The tree as JSON, with dtype, shape, stride (elements) and offset (bytes from `to`) of every tensor as stored.
std::string describe(const Node& node);

}  // namespace worker
