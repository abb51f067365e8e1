"""The built-in functions of Python."""

import builtins

from policy_values import (
    DATA,
    NOTHING,
    PLAIN,
    UNKNOWN,
    WEIGHT,
    Arguments,
    callables,
    one,
    tensor_kinds,
    texts,
)

OPERATORS = {"abs", "sum", "min", "max", "pow", "round", "divmod"}
NUMBERS = {"int", "float", "bool", "complex"}
TEXTS = {"str", "repr", "format", "ascii", "bytes", "bytearray", "hex", "bin", "oct", "chr", "ord"}
CONTAINERS = {"list", "tuple", "set", "frozenset", "dict", "sorted", "reversed", "iter", "filter"}


class Builtins:
    """What a call of a built-in gives."""

    def call_builtin(self, name, arguments, node, frame):
        handler = getattr(self, "builtin_" + name, None)
        if handler is not None:
            return handler(arguments, node, frame)
        if name in NUMBERS or name in TEXTS:
            return self.number_of(name, arguments, node)
        if name in OPERATORS:
            return self.built_in_operator(name, arguments, node)
        if name in CONTAINERS:
            return self.container_of(name, arguments, node)
        if isinstance(getattr(builtins, name, None), type) and issubclass(getattr(builtins, name), BaseException):
            self.heap.add(("thrown", "any"), arguments.all())
            return one("obj", "builtins." + name)
        if name in ("any", "all"):
            self.truth(self.elements(arguments.get(0), node), node)
        elif name not in ("print", "len", "id", "hash", "isinstance", "issubclass", "callable", "hasattr", "range"):
            self.escape(arguments.all(), node)
        for special in ("__len__", "__hash__", "__str__", "__repr__", "__index__"):
            self.dunder(arguments.all(), special, Arguments(), node)
        return PLAIN

    def number_of(self, name, arguments, node):
        self.reads(arguments.all(), node, f"{name}() of a tensor")
        for special in ("__int__", "__float__", "__bool__", "__index__", "__str__", "__repr__", "__format__"):
            self.dunder(arguments.all(), special, Arguments(), node)
        return arguments.get(0) if name == "str" and texts(arguments.get(0)) else PLAIN

    def built_in_operator(self, name, arguments, node):
        self.escape(arguments.kw.get("key", NOTHING), node)
        levels = self.flat(arguments.all(), node)
        inside = frozenset().union(*levels) | self.elements(arguments.get(0), node)
        kinds = tensor_kinds(inside)
        for special in ("__abs__", "__round__", "__pow__", "__divmod__"):
            self.dunder(arguments.all(), special, Arguments([PLAIN]), node)
        if kinds and self.forward:
            self.find("tensor-operator", node, f"{name}() works on a tensor", what=name)
            return DATA
        if any(atom[0] == "inst" for atom in inside):
            return self.binary("Add", inside, inside, node)
        return WEIGHT if kinds else (inside & UNKNOWN or PLAIN)

    def container_of(self, name, arguments, node):
        if name == "sorted":
            self.escape(arguments.kw.get("key", NOTHING), node)
            if self.forward and tensor_kinds(self.elements(arguments.get(0), node)) and "key" not in arguments.kw:
                self.find("tensor-operator", node, "sorted() compares tensors", what="sorted")
        if name == "filter":
            self.truth(self.call(callables(arguments.get(0)), Arguments([self.elements(arguments.get(1), node)]), node), node)
            return self.container(node, self.elements(arguments.get(1), node), name)
        if name == "iter" and len(arguments.pos) == 2:
            return self.container(node, self.call(arguments.get(0), Arguments(), node), name)
        if name == "iter" and len(arguments.pos) == 1 and any(atom[0] == "site" for atom in arguments.pos[0]):
            return arguments.pos[0]
        if name in ("iter", "reversed") and len(arguments.pos) == 1 and not arguments.kw:
            return self.container(node, self.elements(arguments.get(0), node), name)
        inside = frozenset().union(*(self.elements(value, node) for value in arguments.pos), arguments.star)
        return self.container(node, inside | frozenset().union(*arguments.kw.values(), arguments.kwstar), name)

    def builtin_next(self, arguments, node, frame):
        return self.elements(arguments.get(0), node) | arguments.after(1).all()

    def builtin_map(self, arguments, node, frame):
        each = [self.elements(value, node) for value in arguments.pos[1:]]
        return self.container(node, self.call(arguments.get(0), Arguments(each, arguments.star), node), "map")

    def builtin_zip(self, arguments, node, frame):
        where = (node, "pair")
        for index, value in enumerate(arguments.pos):
            self.heap.add(("item", where, index), self.elements(value, node))
        self.lengths[where] = None if arguments.star else len(arguments.pos)
        if arguments.star:
            self.heap.add(("rest", where), self.elements(arguments.star, node))
        return self.container(node, one("site", where), "zip")

    def builtin_enumerate(self, arguments, node, frame):
        where = (node, "pair")
        self.heap.add(("item", where, 0), PLAIN)
        self.heap.add(("item", where, 1), self.elements(arguments.get(0), node))
        self.lengths[where] = 2
        return self.container(node, one("site", where), "enumerate")

    def builtin_super(self, arguments, node, frame):
        if frame is None or frame.cls is None:
            self.find("untraceable-call", node, "super() cannot be followed here")
            return UNKNOWN
        cls = next((atom[1] for atom in arguments.get(0) if atom[0] == "class"), frame.cls)
        me = frame.me or next((a for a in arguments.get(1) if a[0] in ("inst", "class")), ("inst", frame.cls))
        return one("super", cls, me)

    def builtin_type(self, arguments, node, frame):
        if len(arguments.pos) != 1 or arguments.star or arguments.kw:
            self.find("class-machinery", node, "type() makes a class")
            return UNKNOWN
        result = NOTHING
        for atom in arguments.get(0):
            if atom[0] == "inst":
                result |= one("class", atom[1])
            elif atom[0] == "site":
                result |= one("ext", "builtins.list")
            elif atom[0] == "tensor":
                result |= one("ext", "torch.Tensor")
            else:
                result |= PLAIN
        return result

    def builtin_getattr(self, arguments, node, frame):
        names = texts(arguments.get(1))
        if names is None:
            self.find("dynamic-attribute", node, "getattr with a name that is not written out", what="getattr")
            return DATA if self.forward else UNKNOWN
        result = arguments.get(2)
        for name in names:
            result |= self.attribute(arguments.get(0), name, node)
        return result

    def builtin_setattr(self, arguments, node, frame):
        for name in texts(arguments.get(1)) or ["*"]:
            self.store_attribute(arguments.get(0), name, arguments.get(2), node)
        return PLAIN

    def builtin_delattr(self, arguments, node, frame):
        for name in texts(arguments.get(1)) or ["*"]:
            self.store_attribute(arguments.get(0), name, NOTHING, node)
        return PLAIN

    def builtin_property(self, arguments, node, frame):
        return frozenset(("property", atom[1]) for atom in callables(arguments.all()) if atom[0] == "func")

    def builtin_staticmethod(self, arguments, node, frame):
        return frozenset(("static", a[1]) if a[0] == "func" else a for a in arguments.get(0))

    def builtin_classmethod(self, arguments, node, frame):
        return frozenset(("classm", a[1]) if a[0] == "func" else a for a in arguments.get(0))

    def builtin_slice(self, arguments, node, frame):
        self.reads(arguments.all(), node, "a slice ends at a value of a tensor")
        return PLAIN
