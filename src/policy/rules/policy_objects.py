"""Attributes and methods of objects: instances of the file's classes, tensors, layers, containers."""

from policy_values import (
    DATA,
    DEVICE,
    DTYPE,
    FRESH,
    KERNEL,
    NOTHING,
    PLAIN,
    REFUSED,
    UNKNOWN,
    WEIGHT,
    Arguments,
    callables,
    one,
    texts,
)

PYTHON_METHODS = {name for kind in (str, list, dict, set, tuple, int, float, bytes) for name in dir(kind) if name[0] != "_"}
# They mean something else on a tensor.
NOT_ON_UNKNOWN = {"add", "sort", "conjugate", "index_fill", "copy"}
GIVES_INSIDE = {"items", "values", "keys", "get", "pop", "popitem", "popleft", "copy", "setdefault", "union", "most_common"}
TAKES_IN = {"append", "appendleft", "extend", "extendleft", "insert", "add", "update", "setdefault", "move_to_end"}


class Objects:
    """What attributes are, and what methods do."""

    def ancestors(self, cls, seen=None):
        """A class and the classes of the file that it derives from, nearest first."""
        seen = [] if seen is None else seen
        if cls not in seen:
            seen.append(cls)
            for base in self.base_order.get(cls, ()):
                for atom in base:
                    if atom[0] == "class":
                        self.ancestors(atom[1], seen)
        return seen

    def outside_bases(self, cls):
        return {atom[1] for part in self.ancestors(cls) for atom in self.heap.get(("bases", part)) if atom[0] == "ext"}

    def lookup_class(self, cls, name, after=None):
        ancestors = self.ancestors(cls)
        if after in ancestors:
            ancestors = ancestors[ancestors.index(after) + 1 :]
        for part in ancestors:
            if self.heap.has(("cattr", part, name)):
                return self.heap.get(("cattr", part, name))
        return NOTHING

    def is_layer(self, cls):
        return any(path.startswith("torch.nn.") for path in self.outside_bases(cls))

    def attribute(self, value, name, node, inner=False):
        """`inner`: more names follow, and the longest one is looked at."""
        rule = self.config.refused_attributes.get(name)
        if rule or (name.startswith("register_") or name.startswith("_register_")) and name.endswith("_hook"):
            self.find(rule or "hooks", node, f"the attribute {name} is used", what=name)
        elif name == "compile" and any(atom[0] in ("inst", "holder", "super", "unknown") for atom in value):
            self.find("torch-compiler", node, "the model is compiled", what="compile")
        result = NOTHING
        for atom in value:
            if name.startswith("__") and name.endswith("__") and self.refuses_dunder(atom, name):
                self.find("introspection", node, f"the attribute {name} is used", what=name)
                continue
            getter = getattr(self, "attribute_of_" + atom[0], self.attribute_of_other)
            result |= getter(atom, name, node, inner)
        return result

    def refuses_dunder(self, atom, name):
        if name in self.config.allowed_dunder or atom[0] == "tensor":
            return False
        if atom[0] == "ext":
            return not atom[1].startswith("torch.Tensor") and not atom[1].startswith("operator")
        if atom[0] in ("inst", "class", "super"):
            cls = atom[1]
            return not self.lookup_class(cls, name)
        return True

    def attribute_of_ext(self, atom, name, node, inner):
        path = f"{atom[1]}.{name}"
        if atom[1].startswith("builtins."):
            if name == "__init__":
                return PLAIN
            return one("member", ("type", atom[1]), name)
        if name in ("__name__", "__doc__", "__qualname__"):
            return PLAIN
        category, _ = self.config.classify(path)
        if category == "dtypes":
            return DTYPE
        if not inner and not self.check_path(path, node):
            return self.given_by_refused(path)
        if category == "plain" and path.split(".")[-1] == path.split(".")[-1].lower() and path.startswith("torch.version"):
            return PLAIN
        return one("ext", path)

    def given_by_refused(self, path):
        if not path.startswith("torch."):
            return REFUSED
        return DATA if self.forward else UNKNOWN

    def attribute_of_refused(self, atom, name, node, inner):
        return REFUSED

    def attribute_of_inst(self, atom, name, node, inner):
        cls = atom[1]
        if name == "__class__":
            return one("class", cls)
        if name == "__call__":
            return frozenset((atom,))
        result = self.heap.get(("attr", cls, name)) | self.heap.get(("named", name))
        for part in self.ancestors(cls)[1:]:
            result |= self.heap.get(("attr", part, name))
        for member in self.lookup_class(cls, name):
            result |= self.bound_member(member, atom, node)
        if name in ("_parameters", "_buffers", "_modules"):
            return self.container(node, self.parts_of(frozenset((atom,))), "parts")
        if result:
            return result | self.heap.get(("attr", cls, "*"))
        fallback = self.dunder(frozenset((atom,)), "__getattr__", Arguments([one("str", name)]), node)
        fallback |= self.dunder(frozenset((atom,)), "__getattribute__", Arguments([one("str", name)]), node)
        fallback |= self.heap.get(("attr", cls, "*")) | self.heap.get(("named", "*"))
        if name == "training":
            return PLAIN
        if self.is_exception(cls):
            fallback |= self.container(node, self.heap.get(("thrown", "any")), "thrown")
        if self.is_layer(cls) and self.is_weight_name(name):
            return WEIGHT | fallback
        return fallback | one("member", atom, name)

    def bound_member(self, member, me, node):
        """What a class keeps, seen through an instance."""
        kind = member[0]
        if kind == "func":
            return one("bound", member[1], me)
        if kind == "classm":
            return one("bound", member[1], ("class", me[1]))
        if kind == "static":
            return one("func", member[1])
        if kind == "property":
            return self.apply(member[1], Arguments(), node, me)
        if kind == "inst" and self.lookup_class(member[1], "__get__"):
            return self.dunder(frozenset((member,)), "__get__", Arguments([frozenset((me,)), one("class", me[1])]), node)
        return frozenset((member,))

    def attribute_of_class(self, atom, name, node, inner):
        cls = atom[1]
        result = self.heap.get(("named", name))
        if name in ("__name__", "__qualname__", "__doc__", "__module__"):
            return PLAIN
        for member in self.lookup_class(cls, name):
            if member[0] == "classm":
                result |= one("bound", member[1], ("class", cls))
            elif member[0] == "static":
                result |= one("func", member[1])
            else:
                result |= frozenset((member,))
        if name == "apply" and any(path.startswith("torch.autograd.") for path in self.outside_bases(cls)):
            return result | one("autograd", cls)
        return result or one("member", ("super", cls, ("inst", cls)), name)

    def attribute_of_super(self, atom, name, node, inner):
        cls, me = atom[1], atom[2]
        result = NOTHING
        owner = me[1]
        for member in self.lookup_class(owner, name, after=cls) or self.lookup_class(cls, name, after=cls):
            if member[0] == "func":
                result |= one("bound", member[1], me)
            else:
                result |= self.bound_member(member, me, node)
        if result:
            return result
        return one("member", atom, name)

    def attribute_of_tensor(self, atom, name, node, inner):
        lists = self.config.tensor
        if name in lists["attributes"]:
            return DTYPE if name == "dtype" else DEVICE if name == "device" else PLAIN
        if name in lists["view_attributes"]:
            return DATA if atom[1] in ("input", "kernel", "scalar") else frozenset((atom,))
        if atom[1] in ("input", "kernel") and name not in lists["every_method"]:
            # A field of a named tuple or of an object.
            return frozenset((atom,)) | one("member", atom, name)
        if name in ("H", "mH"):
            if self.forward:
                self.find("tensor-method", node, f"the attribute {name} conjugates with torch", what=name)
            return frozenset((atom,))
        return one("member", atom, name) | self.heap.get(("named", name))

    def attribute_of_holder(self, atom, name, node, inner):
        if name == "__call__":
            return frozenset((atom,))
        own = self.heap.get(("named", name))
        if self.is_weight_name(name):
            return own | WEIGHT | PLAIN
        layers = self.config.layers
        if name in layers["gives_itself"] | layers["gives_parts"] or name in ("forward", "__init__", "reset_parameters"):
            return own | one("member", atom, name)
        return own | (UNKNOWN if not name.startswith("_") else one("member", atom, name))

    def is_weight_name(self, name):
        layers = self.config.layers
        return name in layers["tensors"] or any(name.startswith(prefix) for prefix in layers["tensor_prefixes"])

    def attribute_of_unknown(self, atom, name, node, inner):
        own = self.heap.get(("named", name))
        return own | WEIGHT if self.is_weight_name(name) else own | one("unknown") | one("member", atom, name)

    def attribute_of_site(self, atom, name, node, inner):
        own = self.heap.get(("named", name)) | self.heap.get(("item", atom[1], name))
        if name in PYTHON_METHODS or name in TAKES_IN or name in GIVES_INSIDE:
            return own | one("member", atom, name)
        inside = self.elements(frozenset((atom,)), node)
        return own | inside | one("member", atom, name)

    def attribute_of_property(self, atom, name, node, inner):
        return one("member", atom, name)

    def attribute_of_member(self, atom, name, node, inner):
        if atom[1][0] == "tensor":
            return self.attribute(frozenset((atom[1],)), name, node)
        return UNKNOWN | one("member", ("unknown",), name)

    def attribute_of_obj(self, atom, name, node, inner):
        own = self.heap.get(("named", name)) | one("member", atom, name)
        if not atom[1].startswith("builtins."):
            return own
        thrown = self.heap.get(("thrown", "any"))  # an exception: its args, or StopIteration's value
        return own | thrown | self.container(node, thrown, "thrown")

    def attribute_of_other(self, atom, name, node, inner):
        return self.heap.get(("named", name)) | one("member", atom, name)

    def store_attribute(self, into, name, value, node):
        if name.startswith("__") and name.endswith("__") and name not in ("__doc__", "__name__"):
            self.find("introspection", node, f"the attribute {name} is replaced", what=name)
        for atom in into:
            if atom[0] == "ext":
                rule = self.config.classify(f"{atom[1]}.{name}")
                rule = rule[1] if rule[1] == "global-state" else "patches-modules"
                self.find(rule, node, f"{atom[1]}.{name} is replaced", what=atom[1])
            elif atom[0] == "inst":
                self.store_on_instance(atom, name, value, node)
            elif atom[0] == "class":
                self.heap.add(("cattr", atom[1], name), value)
            elif atom[0] == "super":
                self.heap.add(("attr", atom[2][1], name), value)
            else:
                if atom[0] == "holder" and name == "forward":
                    self.find("patches-modules", node, "the forward of a layer is replaced", what=name)
                self.heap.add(("named", name), value)
                if atom[0] == "site":
                    self.heap.add(("rest", atom[1]), value)

    def store_on_instance(self, atom, name, value, node):
        for member in self.lookup_class(atom[1], name):
            if member[0] == "property":
                for setter in self.heap.get(("setter", member[1])):
                    self.call(one("bound", setter[1], atom), Arguments([value]), node)
        self.dunder(frozenset((atom,)), "__setattr__", Arguments([one("str", name), value]), node)
        self.heap.add(("attr", atom[1], name), value)

    def call_member(self, atom, name, arguments, node):
        """A method of something that is not a class of the file."""
        caller = getattr(self, "method_of_" + atom[0], self.method_of_other)
        return caller(atom, name, arguments, node)

    def method_of_other(self, atom, name, arguments, node):
        self.escape(arguments.all(), node)
        if name == "__call__":
            return self.call(frozenset((atom,)), arguments, node)
        return PLAIN

    def method_of_obj(self, atom, name, arguments, node):
        self.escape(arguments.all(), node)
        if name in ("enter_context", "push"):
            return arguments.all() | self.elements(frozenset(a for a in arguments.all() if a[0] == "site"), node)
        # What a context of an autograd function saved are the tensors of forward.
        return DATA if name in ("saved_tensors", "mark_dirty") and self.forward else PLAIN

    def method_of_type(self, atom, name, arguments, node):
        """dict.fromkeys, list.append and their like, called through the class."""
        result = NOTHING
        for first in arguments.get(0):
            if first[0] in ("site", "inst"):
                result |= self.call_member(first, name, arguments.after(1), node)
        inside = frozenset().union(*self.flat(arguments.all(), node))
        # A text may have been changed: it is known no longer.
        inside = frozenset(("plain",) if part[0] == "str" else part for part in inside)
        return result | inside | self.container(node, inside, "made") if name == "fromkeys" or result or inside else PLAIN

    def method_of_property(self, atom, name, arguments, node):
        for function in callables(arguments.all()):
            if name == "setter" and function[0] == "func":
                self.heap.add(("setter", atom[1]), frozenset((function,)))
        return frozenset((atom,))

    def method_of_unknown(self, atom, name, arguments, node):
        known = name in PYTHON_METHODS and name not in NOT_ON_UNKNOWN or name in self.config.tensor["plain"]
        known = known or name in self.config.tensor["views"]
        self.escape(arguments.all(), node)
        if not self.forward or known:
            return UNKNOWN
        self.find("untraceable-call", node, f"the method {name} of a value that cannot be followed", what=name)
        return DATA

    def method_of_site(self, atom, name, arguments, node):
        me = frozenset((atom,))
        if atom[1] in self.containers and (name in self.config.layers["gives_itself"] | self.config.layers["gives_parts"]):
            if name in ("add_module", "register_module", "register_parameter", "register_buffer"):
                self.heap.add(("rest", atom[1]), arguments.after(1).all())
            return self.method_of_holder(atom, name, arguments, node)
        if name in TAKES_IN:
            inside = arguments.all()
            if name in ("extend", "extendleft", "update"):
                inside = self.elements(inside, node)
            self.heap.add(("rest", atom[1]), inside)
        if name == "sort":
            self.escape(arguments.kw.get("key", NOTHING), node)
        if name == "forward":
            return self.call_container(atom, arguments, node)
        if name == "send":
            self.heap.add(("sent", atom[1]), arguments.all())
            return self.elements(me, node)
        if name == "items":
            return self.container(node, self.pairs(me, node), "items")
        if name in ("values", "keys", "copy", "union"):
            return self.container(node, self.elements(me, node) | self.elements(arguments.all(), node), name)
        if name in GIVES_INSIDE:
            return self.elements(me, node) | arguments.after(1).all() | PLAIN
        if name in PYTHON_METHODS or name.startswith("__"):
            return PLAIN
        return self.container(node, self.elements(me, node) | arguments.all(), name)

    def pairs(self, value, node):
        where = (node, "pair")
        self.heap.add(("item", where, 0), PLAIN)
        self.heap.add(("item", where, 1), self.elements(value, node))
        self.lengths[where] = 2
        return one("site", where)

    def parts_of(self, value):
        """Layers, parameters and buffers inside of a module."""
        result, seen, waiting = NOTHING, set(), list(value)
        while waiting:
            atom = waiting.pop()
            if atom in seen:
                continue
            seen.add(atom)
            if atom[0] == "inst":
                inside = frozenset().union(*(self.heap.all("attr", part) for part in self.ancestors(atom[1])))
            elif atom[0] == "site":
                inside = self.elements(frozenset((atom,)), None)
            elif atom[0] == "holder":
                inside = WEIGHT
            else:
                inside = NOTHING
            kept = frozenset(a for a in inside if a[0] in ("inst", "holder", "tensor") or a[0] == "site" and a[1] in self.containers)
            result |= kept
            waiting.extend(kept)
        return result

    def method_of_inst(self, atom, name, arguments, node):
        bases = self.outside_bases(atom[1])
        if self.is_layer(atom[1]):
            return self.method_of_holder(atom, name, arguments, node)
        if any(path.startswith(("builtins.", "collections.", "typing.", "enum.")) for path in bases):
            own = ("site", (atom[1], "own"))
            self.heap.add(("rest", own[1]), self.heap.all("attr", atom[1]))
            return self.method_of_site(own, name, arguments, node)
        if name.startswith("__"):
            return PLAIN
        return self.method_of_unknown(atom, name, arguments, node)

    def method_of_super(self, atom, name, arguments, node):
        me = atom[2]
        if name == "__init__" and me[0] == "inst":
            self.keep_given(me[1], arguments, node)
        if name in ("__init__", "__post_init__", "__init_subclass__", "__new__"):
            return frozenset((me,)) if name == "__new__" else PLAIN
        if name == "__getattr__":
            names = texts(arguments.get(0))
            return frozenset().union(*(self.heap.get(("attr", me[1], n)) for n in names or [])) or UNKNOWN
        if name == "__setattr__":
            for text in texts(arguments.get(0)) or ["*"]:
                self.heap.add(("attr", me[1], text), arguments.get(1))
            return PLAIN
        if me[0] == "inst":
            return self.method_of_inst(me, name, arguments, node)
        return self.method_of_other(atom, name, arguments, node)

    def method_of_class(self, atom, name, arguments, node):
        return self.method_of_super(("super", atom[1], ("inst", atom[1])), name, arguments, node)

    def method_of_holder(self, atom, name, arguments, node):
        """A method of an nn layer, or one that a class of the file has from its nn base."""
        me, layers = frozenset((atom,)), self.config.layers
        if name in ("forward", "__call__"):
            if atom[0] == "inst":
                bases = ", ".join(sorted(self.outside_bases(atom[1])))
                return self.call_layer(("holder", bases or "object"), arguments, node)
            return self.call_layer(atom, arguments, node)
        if name in ("register_buffer", "register_parameter", "add_module", "register_module"):
            for text in texts(arguments.get(0, "name")) or ["*"]:
                value = arguments.get(1, {"register_buffer": "tensor", "register_parameter": "param"}.get(name, "module"))
                self.store_attribute(me, text, value, node)
            return PLAIN
        if name == "apply":
            self.call(arguments.get(0), Arguments([self.parts_of(me) | me]), node)
            return me
        if name in layers["gives_itself"]:
            return me
        if name in layers["gives_parts"]:
            return self.inside_module(me, name, node)
        if name == "_apply":
            return me
        if name in layers["gives_plain"] or name in layers["called_by_torch"] or name.startswith("__"):
            return PLAIN
        self.escape(arguments.all(), node)
        if not self.forward:
            return UNKNOWN
        if atom[0] == "holder":
            self.find("layer-call", node, f"the method {name} of the layer {atom[1]} is called", what=name)
        else:
            self.find("untraceable-call", node, f"self.{name} is not defined in the file", what=name)
        return DATA

    def inside_module(self, me, name, node):
        inside = self.parts_of(me) | (me if name in ("modules", "named_modules") else NOTHING)
        tensors = frozenset(atom for atom in inside if atom[0] == "tensor") or WEIGHT
        if "parameter" in name or "buffer" in name or name == "state_dict":
            inside = tensors
        elif not name.startswith("_"):
            inside -= tensors
        if name in ("get_parameter", "get_buffer", "get_submodule"):
            return inside or UNKNOWN
        if name.startswith("named_"):
            return self.container(node, self.pairs(self.container(node, inside, "inside"), node), "parts")
        return self.container(node, inside, "parts")

    def method_of_tensor(self, atom, name, arguments, node):
        lists, me = self.config.tensor, frozenset((atom,))
        if name in lists["plain"]:
            return PLAIN
        if name in lists["attributes"] or name in lists["view_attributes"]:
            return self.attribute_of_tensor(atom, name, node, False)
        if name in lists["views"]:
            return DATA if atom[1] in ("input", "kernel", "scalar") else me
        if name in lists["allocates"]:
            return FRESH if self.forward else WEIGHT
        if name in lists["writes"]:
            return me
        if not self.forward:
            self.escape(arguments.all(), node)
            return PLAIN if name in lists["reads"] else WEIGHT
        if name in lists["moves"] or name in lists["converts"]:
            return self.moved(atom, name, arguments, node)
        return self.refused_method(atom, name, arguments, node)

    def moved(self, atom, name, arguments, node):
        me = frozenset((atom,))
        if atom[1] in ("weight", "fresh") and self.only_weights(arguments.all(), node):
            return me
        places = {"device", "str", "plain", "unknown", "obj", "ext"}
        if name == "to" and all(part[0] in places for part in arguments.all()):
            return me
        if name in ("clone", "cuda", "pin_memory"):
            return DATA
        if name == "type" and not arguments.pos and not arguments.kw:
            return PLAIN
        self.find_method(name, node, f"the method {name} converts or copies with torch")
        return DATA

    def refused_method(self, atom, name, arguments, node):
        self.escape(arguments.all(), node)
        if name in self.config.tensor["reads"]:
            self.find("reads-values", node, f"the method {name} reads values of a tensor", what=name)
            return PLAIN
        if name.startswith("__"):
            self.find("tensor-operator", node, f"the method {name} works on a tensor", what=name)
            return DATA
        inside = self.input_container(atom, name, arguments, node)
        if inside is not None:
            return inside
        if atom[1] in ("kernel", "scalar") and name not in self.config.tensor["every_method"]:
            # An object of a class that the extension defines.
            self.kernel_touches += 1
            self.kernel_called = True
            return KERNEL
        self.find_method(name, node, f"the method {name} computes with torch")
        return DATA

    def input_container(self, atom, name, arguments, node):
        """What forward gets may be a list or a dict."""
        if atom[1] not in ("input", "kernel") or name not in ("items", "values", "keys", "get", "copy", "pop", "_asdict"):
            return None
        me = frozenset((atom,))
        if name == "items":
            return self.container(node, self.pairs(me, node), "items")
        if name in ("values", "keys", "_asdict", "copy"):
            return self.container(node, me, name)
        return me | arguments.after(1).all()

    def find_method(self, name, node, message):
        rule = "torch-fallback" if self.in_fallback else "tensor-method"
        self.find(rule, node, message + (" when a kernel has raised" if self.in_fallback else ""), what=f".{name}")
