"""Python values as JSON and back: tensors by dtype, shape, stride and storage, so that aliasing survives.

A value tree is {"kind": ..., ...}. Tensors name a storage by its number; storages are listed apart with their size and,
once an arena is known, the byte at which they lie in it. The supervisor moves the bytes, never the objects.
"""

import collections

import torch

ALIGNMENT = 256
_DTYPES = {str(v).removeprefix("torch."): v for v in vars(torch).values() if isinstance(v, torch.dtype)}


class Unsupported(Exception):
    """A value that cannot be handed to another process."""


def dtype_of(name):
    """The torch.dtype called `name` ("float32")."""
    return _DTYPES[name]


def _aligned(size):
    return (size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


class Encoder:
    """Collects the storages of everything it encodes; their places are fixed by `layout`."""

    def __init__(self):
        self._storages = []
        self._numbers = {}

    def encode(self, value, where):
        """The tree of `value`; `where` names it in errors ("get_inputs()[0]")."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value, where)
        if value is None or isinstance(value, (bool, str)):
            return {"kind": "plain", "value": value}
        if isinstance(value, int):
            return {"kind": "int", "value": str(int(value))}
        if isinstance(value, float):
            return {"kind": "float", "value": value.hex()}
        if isinstance(value, complex):
            return {"kind": "complex", "value": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, torch.dtype):
            return {"kind": "dtype", "value": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"kind": "device", "value": str(value)}
        if isinstance(value, torch.Size):
            return {"kind": "size", "value": list(value)}
        if isinstance(value, tuple) and hasattr(type(value), "_fields"):
            items = [self.encode(v, f"{where}.{n}") for n, v in zip(value._fields, value)]
            return {"kind": "namedtuple", "name": type(value).__name__, "names": list(value._fields), "items": items}
        if isinstance(value, (list, tuple)):
            kind = "list" if isinstance(value, list) else "tuple"
            return {"kind": kind, "items": [self.encode(v, f"{where}[{i}]") for i, v in enumerate(value)]}
        if isinstance(value, dict):
            keys = [self.encode(k, f"{where}.keys()") for k in value]
            items = [self.encode(v, f"{where}[{k!r}]") for k, v in value.items()]
            return {"kind": "dict", "keys": keys, "items": items}
        if type(value).__module__ == "numpy":
            return self.encode(value.item() if value.ndim == 0 else torch.from_numpy(value), where)
        raise Unsupported(f"{where} is a {type(value).__module__}.{type(value).__qualname__}, which cannot be passed on")

    def _tensor(self, tensor, where):
        tensor = tensor.detach() if tensor.requires_grad and not tensor.is_leaf else tensor
        if tensor.layout is not torch.strided or tensor.is_quantized:
            raise Unsupported(f"{where} is a tensor of layout {tensor.layout}; only plain strided tensors can be passed on")
        tensor_data = tensor.detach().resolve_conj().resolve_neg()
        storage = tensor_data.untyped_storage()
        key = storage.data_ptr() if storage.nbytes() else ("empty", len(self._storages))
        if key not in self._numbers:
            self._numbers[key] = len(self._storages)
            self._storages.append(storage)
        return {
            "kind": "tensor",
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor_data.shape),
            "stride": list(tensor_data.stride()),
            "storage": self._numbers[key],
            "offset": tensor_data.storage_offset(),
            "requires_grad": bool(tensor.requires_grad),
        }

    def layout(self):
        """[{"bytes", "at"}] for each storage, packed one after the other, and the bytes of all."""
        places, at = [], 0
        for storage in self._storages:
            places.append({"bytes": storage.nbytes(), "at": at})
            at += _aligned(storage.nbytes())
        return places, at

    def store(self, worker, arena, base):
        """Copies every storage to its place behind byte `base` of an arena."""
        for storage, place in zip(self._storages, self.layout()[0]):
            if place["bytes"]:
                room = worker.bytes_of(arena, base + place["at"], place["bytes"])
                source = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
                room.copy_(source[: place["bytes"]])


class Decoder:
    """Builds values whose tensors lie in an arena, aliasing each other as the encoded ones did."""

    def __init__(self, worker, tensor_over, device, arena, base, storages):
        self._tensor_over = tensor_over
        self._bytes = [
            worker.bytes_of(arena, base + s["at"], s["bytes"]) if s["bytes"] else torch.empty(0, dtype=torch.uint8, device=device)
            for s in storages
        ]

    def decode(self, tree):
        """The value of a tree."""
        kind = tree["kind"]
        if kind == "tensor":
            bytes_, dtype = self._bytes[tree["storage"]], dtype_of(tree["dtype"])
            tensor = self._tensor_over(bytes_, dtype, tree["offset"], tree["shape"], tree["stride"])
            return tensor.requires_grad_() if tree["requires_grad"] else tensor
        if kind == "plain":
            return tree["value"]
        if kind == "int":
            return int(tree["value"])
        if kind == "float":
            return float.fromhex(tree["value"])
        if kind == "complex":
            return complex(*(float.fromhex(v) for v in tree["value"]))
        if kind == "dtype":
            return dtype_of(tree["value"])
        if kind == "device":
            return torch.device(tree["value"])
        if kind == "size":
            return torch.Size(tree["value"])
        if kind == "namedtuple":
            made = collections.namedtuple(tree["name"], tree["names"])
            return made(*(self.decode(v) for v in tree["items"]))
        if kind == "list":
            return [self.decode(v) for v in tree["items"]]
        if kind == "tuple":
            return tuple(self.decode(v) for v in tree["items"])
        if kind == "dict":
            return {self.decode(k): self.decode(v) for k, v in zip(tree["keys"], tree["items"])}
        raise ValueError(f"unknown kind of value: {kind}")
