"""Calls: functions and classes of the file, and what is outside of it."""

import ast

from policy_values import (
    DATA,
    DEVICE,
    FRESH,
    INPUT,
    KERNEL,
    NOTHING,
    PLAIN,
    REFUSED,
    SCALAR,
    UNKNOWN,
    WEIGHT,
    Arguments,
    Frame,
    callables,
    one,
    tensor_kinds,
)

MOST_VARIANTS = 24


def yields(node):
    """Whether a function is a generator."""
    if isinstance(node, ast.Lambda):
        return False
    waiting = list(node.body)
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting.extend(ast.iter_child_nodes(part))
    return False


class Calls:
    """What a call does and gives."""

    def call(self, callee, arguments, node, frame=None):
        result = NOTHING
        # x.size may be a field or a method: as the target of a call it is the method.
        named = {atom[1] for atom in callee if atom[0] == "member"}
        # A number or None cannot be called: where a value may also be a function, that is what is called.
        idle = {("plain",)} if len(callee - named) > 1 else set()
        for atom in callee:
            if atom not in named and atom not in idle:
                result |= self.call_atom(atom, arguments, node, frame)
        return result

    def call_atom(self, atom, arguments, node, frame):
        kind = atom[0]
        if kind == "func":
            return self.apply(atom[1], arguments, node)
        if kind == "bound":
            return self.apply(atom[1], arguments, node, atom[2])
        if kind in ("static", "classm"):
            return self.apply(atom[1], arguments, node)
        if kind == "class":
            return self.instantiate(atom[1], arguments, node)
        if kind == "inst":
            return self.call_instance(atom, arguments, node)
        if kind == "partial":
            return self.call_partial(atom, arguments, node)
        if kind == "autograd":
            context = Arguments([one("obj", "context")] + arguments.pos, arguments.star, arguments.kw, arguments.kwstar)
            return self.call(self.attribute(one("class", atom[1]), "forward", node), context, node)
        if kind == "ext":
            return self.call_outside(atom[1], arguments, node, frame)
        if kind == "member":
            return self.call_member(atom[1], atom[2], arguments, node)
        if kind == "holder":
            return self.call_layer(atom, arguments, node)
        if kind == "site":
            return self.call_container(atom, arguments, node)
        self.escape(arguments.all(), node)
        if kind == "refused":
            return REFUSED
        if self.forward:
            self.find("untraceable-call", node, "what is called here cannot be followed")
            return DATA
        return UNKNOWN

    def call_instance(self, atom, arguments, node):
        own = self.lookup_class(atom[1], "__call__")
        if own:
            return self.dunder(frozenset((atom,)), "__call__", arguments, node)
        return self.call(self.attribute(frozenset((atom,)), "forward", node), arguments, node)

    def call_partial(self, atom, arguments, node):
        where = atom[1]
        fixed = [self.heap.get(("item", where, index)) for index in range(self.lengths[where])]
        names = [key[2] for key in self.heap.parts.get(("keyword", where), ())]
        named = {name: self.heap.get(("keyword", where, name)) for name in names}
        rest = self.heap.get(("rest", where))
        merged = Arguments(fixed + arguments.pos, arguments.star | rest, named | arguments.kw, arguments.kwstar | rest)
        return self.call(self.heap.get(("item", where, "function")), merged, node)

    def call_layer(self, atom, arguments, node):
        name = atom[1].split(".")[-1]
        if name in self.config.layers["views"]:
            return arguments.all()
        self.escape(arguments.all(), node)
        if not self.forward:
            return WEIGHT
        self.find("layer-call", node, f"the layer {atom[1]} is called", what=atom[1])
        return DATA

    def call_container(self, atom, arguments, node):
        name = self.containers.get(atom[1])
        if name != "Sequential":
            if self.forward:
                self.find("untraceable-call", node, "a container is called")
            return DATA if self.forward else UNKNOWN
        value = arguments.all()
        for _ in range(2):  # what one part gives is what the next one gets
            parts = frozenset(a for a in self.elements(one(*atom), node) if a[0] not in ("plain", "str", "tensor"))
            value |= self.call(parts, Arguments([value]), node)
        return value

    def apply(self, function, arguments, node, me=None):
        """Runs a function of the file. Its parameters decide: the same ones are run once."""
        bound = self.bind(function, arguments, me)
        key = (function, self.forward, me, tuple(sorted(bound.items())))
        variants = self.variants.setdefault(function, set())
        if key not in variants and len(variants) >= MOST_VARIANTS:
            for name, value in bound.items():
                self.heap.add(("wide", function, name), value)
            bound = {name: self.heap.get(("wide", function, name)) for name in bound}
            key = (function, self.forward, me, "wide")
        variants.add(key)
        if key in self.done:
            value, touches = self.done[key]
            self.kernel_touches += touches
            return value
        if key in self.running:
            return self.heap.get(("result", key))
        if len(self.chain) > self.config.limits["calls"]:
            self.find("too-deep", node, "calls nest too deeply")
            return UNKNOWN
        return self.run_function(function, bound, key, me)

    def run_function(self, function, bound, key, me):
        owner_me = me if self.owner.get(function) is not None and me is not None else self.owner_me.get(function)
        frame = Frame(function, (function,) + self.scopes[function], self.owner.get(function), owner_me)
        for name, value in bound.items():
            self.store_name(name, value, frame)
        before = self.kernel_touches
        self.running.add(key)
        self.chain.append(getattr(function, "name", "lambda"))
        outer, self.in_condition = self.in_condition, False
        if isinstance(function, ast.Lambda):
            value = self.eval(function.body, frame)
        else:
            ended = self.run(function.body, frame)
            value = frame.returned | (NOTHING if ended else PLAIN)
            if yields(function):
                self.heap.add(("returned", (function, "yield")), value)
                self.heap.add(("thrown", "any"), value)  # StopIteration carries it
                value = one("site", (function, "yield"))
        self.in_condition = outer
        self.chain.pop()
        self.running.discard(key)
        self.heap.add(("result", key), value)
        value = self.heap.get(("result", key))
        self.done[key] = value, int(self.kernel_touches > before)
        return value

    def bind(self, function, arguments, me):
        spec = function.args
        names = [argument.arg for argument in spec.posonlyargs + spec.args]
        values = ([frozenset((me,))] if me is not None else []) + arguments.pos
        loose = arguments.star | arguments.kwstar
        bound = {}
        for index, name in enumerate(names):
            if index < len(values):
                bound[name] = values[index]
            else:
                passed = arguments.kw.get(name, NOTHING) | loose
                bound[name] = passed | (NOTHING if name in arguments.kw else self.heap.get(("default", function, name)))
        for argument in spec.kwonlyargs:
            passed = arguments.kw.get(argument.arg, NOTHING) | arguments.kwstar
            if argument.arg not in arguments.kw:
                passed |= self.heap.get(("default", function, argument.arg))
            bound[argument.arg] = passed
        bound = {name: value or UNKNOWN for name, value in bound.items()}
        if spec.vararg is not None:
            rest = frozenset().union(*values[len(names) :], loose)
            bound[spec.vararg.arg] = self.container(function, rest, "*")
        if spec.kwarg is not None:
            known = set(names) | {argument.arg for argument in spec.kwonlyargs}
            rest = frozenset().union(*(v for k, v in arguments.kw.items() if k not in known), arguments.kwstar)
            bound[spec.kwarg.arg] = self.container(function, rest, "**")
        return bound

    def instantiate(self, cls, arguments, node):
        """An object of a class of the file."""
        self.instances.add(cls)
        self.heap.add(("made", cls), PLAIN)  # who catches exceptions may get one: that asks for one more pass
        me = ("inst", cls)
        made = frozenset((me,))
        for method in self.lookup_class(cls, "__new__"):
            if method[0] == "func":
                made |= self.apply(method[1], Arguments([one("class", cls)] + arguments.pos, arguments.star, arguments.kw), node)
        own = self.lookup_class(cls, "__init__")
        if own:
            for method in own:
                if method[0] == "func":
                    self.apply(method[1], arguments, node, me)
                else:
                    self.call(frozenset((method,)), arguments, node)
        elif self.is_layer(cls):
            self.keep_given(cls, arguments, node)
        else:
            self.fill_fields(cls, arguments)
        for method in self.lookup_class(cls, "__post_init__"):
            if method[0] == "func":
                self.apply(method[1], Arguments(), node, me)
        return made

    def keep_given(self, cls, arguments, node):
        """A constructor of somebody else's may keep what it gets: nn.ModuleList does, and so do exceptions."""
        self.heap.add(("rest", (cls, "own")), frozenset().union(*self.flat(arguments.all(), node)))
        if self.is_exception(cls):
            self.heap.add(("thrown", "any"), arguments.all())

    def fill_fields(self, cls, arguments):
        """What a constructor made by dataclass or NamedTuple does; containers hold what they are given."""
        names = [name for part in reversed(self.ancestors(cls)) for name in self.fields.get(part, ())]
        for index, value in enumerate(arguments.pos):
            self.heap.add(("attr", cls, names[index] if index < len(names) else "*"), value)
        for name, value in arguments.kw.items():
            self.heap.add(("attr", cls, name), value)
        if arguments.star or arguments.kwstar:
            self.heap.add(("attr", cls, "*"), arguments.star | arguments.kwstar)

    def dunder(self, value, name, arguments, node):
        """Calls a special method where the value is an object of a class of the file that has it."""
        result = NOTHING
        for atom in value:
            if atom[0] == "inst":
                for method in self.lookup_class(atom[1], name):
                    if method[0] == "func":
                        result |= self.apply(method[1], arguments, node, atom)
                    elif method[0] in ("static", "class", "inst", "ext", "partial", "member"):
                        result |= self.call(frozenset((method,)), arguments, node)
        return result

    def escape(self, value, node):
        """Something outside of the file gets these values and may call those that can be called, also later: in
        forward, even when __init__ hands them on."""
        outer, self.forward = self.forward, True
        self.call_escaped(value, node)
        self.forward = outer

    def call_escaped(self, value, node):
        seen, waiting = set(), list(value)
        while waiting:
            atom = waiting.pop()
            if atom in seen:
                continue
            seen.add(atom)
            if atom[0] == "site":
                waiting.extend(self.elements(frozenset((atom,)), node))
            elif atom[0] in ("func", "bound", "partial", "autograd", "static", "classm"):
                self.call(frozenset((atom,)), Arguments([], UNKNOWN | INPUT, {}, UNKNOWN), node)
            elif atom[0] == "ext" and self.config.classify(atom[1])[0] in ("computes", "tensor_methods", "layer_methods"):
                self.find("torch-compute", node, f"{atom[1]} is handed on to be called", what=atom[1])
            elif atom[0] == "member" and atom[1][0] == "tensor" and self.is_method(atom):
                self.call_member(atom[1], atom[2], Arguments(), node)

    def is_method(self, member):
        """Not a field of a named tuple."""
        return member[2] in self.config.tensor["every_method"]

    def call_outside(self, path, arguments, node, frame):
        """A call of something outside of the file."""
        category, rule = self.config.classify(path)
        handler = getattr(self, "call_" + category, None)
        if category == "refused":
            self.check_path(path, node)
            self.escape(arguments.all(), node)
            return self.given_by_refused(path)
        if category == "builtins":
            return self.call_builtin(path.split(".")[-1], arguments, node, frame)
        if path in self.decorating:
            return self.call_decorator(path, arguments, node)
        return handler(path, arguments, node) if handler else self.call_plain(path, arguments, node)

    def call_decorator(self, path, arguments, node):
        if path == "functools.wraps":
            return one("ext", "functools.cache")  # gives back what it decorates
        kinds = ("ext", "member", "holder", "inst")
        decorated = frozenset(atom for atom in arguments.all() if atom[0] in kinds) | callables(arguments.all())
        return decorated or one("ext", path)

    def call_extension(self, path, arguments, node):
        self.escape(arguments.all(), node)
        if self.forward:
            self.kernel_touches += 1
            self.kernel_called = True
        return KERNEL if self.holds_tensor(arguments.all(), node) else SCALAR

    def holds_tensor(self, value, node):
        return any(tensor_kinds(part) or any(a[0] in ("inst", "holder", "unknown") for a in part) for part in self.flat(value, node))

    def flat(self, value, node):
        """A value and what containers in it hold, three levels deep."""
        levels = [value]
        for _ in range(3):
            sites = frozenset(atom for atom in levels[-1] if atom[0] == "site")
            if not sites:
                break
            levels.append(self.elements(sites, node))
        return levels

    def call_plain(self, path, arguments, node):
        if path == "dataclasses.field":
            factory = arguments.kw.get("default_factory", NOTHING)
            return self.call(factory, Arguments(), node) | arguments.kw.get("default", NOTHING) or PLAIN
        if path == "types.SimpleNamespace":
            return self.container(node, arguments.all(), "namespace")
        if path.startswith("math."):
            for value in self.flat(arguments.all(), node):
                self.reads(value, node, f"{path} works on a tensor")
        elif not path.startswith("torch."):
            self.escape(arguments.all(), node)
        if path.startswith("typing"):
            return arguments.all() | PLAIN  # cast, assert_type, reveal_type
        if path == "dataclasses.replace":
            for atom in arguments.get(0):
                for name, value in arguments.kw.items() if atom[0] == "inst" else ():
                    self.heap.add(("attr", atom[1], name), value)
            return arguments.get(0)
        if path.startswith("dataclasses.") and arguments.pos:
            return self.container(node, self.elements(arguments.get(0), node), "fields")
        return PLAIN

    call_spaces = call_dtypes = call_plain

    def call_numbers(self, path, arguments, node):
        for value in self.flat(arguments.all(), node):
            self.reads(value, node, f"{path} works on a tensor")
            if self.forward and "input" in tensor_kinds(value):
                self.find("reads-values", node, f"{path} works on what forward gets")
        return PLAIN

    def call_devices(self, path, arguments, node):
        return DEVICE

    def call_contexts(self, path, arguments, node):
        self.escape(arguments.all(), node)
        return one("obj", path) | (arguments.get(0) if path == "contextlib.nullcontext" else NOTHING)

    call_objects = call_contexts

    def call_allocates(self, path, arguments, node):
        if self.forward and path in ("torch.tensor", "torch.as_tensor") and tensor_kinds(arguments.get(0)):
            self.find_compute(path, node, f"{path} copies or converts a tensor")
        if self.forward and path in ("torch.tensor", "torch.as_tensor", "torch.scalar_tensor", "torch.full"):
            for value in self.flat(arguments.all(), node):
                self.reads(value, node, f"{path} copies values out of a tensor")
        return FRESH if self.forward else WEIGHT

    def call_views(self, path, arguments, node):
        return self.derived(arguments.all(), node)

    def derived(self, value, node):
        """A tensor that shows the memory of others."""
        kinds = set().union(*(tensor_kinds(part) for part in self.flat(value, node)))
        for kind in ("input", "data", "kernel", "scalar"):
            if kind in kinds:
                return DATA
        return FRESH if "fresh" in kinds else WEIGHT if kinds or not self.forward else DATA

    def only_weights(self, value, node):
        return not set().union(*(tensor_kinds(part) for part in self.flat(value, node))) - {"weight", "fresh"}

    def call_moves(self, path, arguments, node):
        if not self.forward or self.only_weights(arguments.all(), node):
            return WEIGHT
        self.find_compute(path, node, f"{path} copies what forward gets or a kernel made")
        return DATA

    def call_computes(self, path, arguments, node):
        self.escape(arguments.all(), node)
        if not self.forward:
            return WEIGHT
        self.find_compute(path, node, f"{path} computes with torch")
        return DATA

    def find_compute(self, path, node, message):
        rule = "torch-fallback" if self.in_fallback else "torch-compute"
        self.find(rule, node, message + (" when a kernel has raised" if self.in_fallback else ""), what=path)

    def call_tensor_methods(self, path, arguments, node):
        first = arguments.get(0)
        result = NOTHING
        for atom in first:
            receiver = atom if atom[0] == "tensor" else ("tensor", "data")
            result |= self.call_member(receiver, path.split(".")[-1], arguments.after(1), node)
        return result

    def call_layer_methods(self, path, arguments, node):
        name = path.split(".")[-1]
        result = NOTHING
        for atom in arguments.get(0):
            if name == "__init__" and atom[0] in ("inst", "super"):
                result |= PLAIN
            elif name == "__call__":
                result |= self.call(frozenset((atom,)), arguments.after(1), node)
            else:
                result |= self.call_member(atom, name, arguments.after(1), node)
        return result

    def call_layers(self, path, arguments, node):
        name = path.split(".")[-1]
        if name in self.config.layers["containers"]:
            where = (node, "layers")
            self.containers[where] = name
            inside = frozenset().union(*self.flat(arguments.all(), node))
            self.heap.add(("rest", where), frozenset(a for a in inside if a[0] != "site" or a[1] in self.containers))
            return one("site", where)
        # An activation given to nn.TransformerEncoderLayer is only called with the layer.
        return one("holder", path)

    def call_handled(self, path, arguments, node):
        name = path.split(".")[-1]
        if path.startswith("operator."):
            return self.call_operator(name, arguments, node)
        if name in ("Parameter", "Buffer", "UninitializedParameter"):
            return (arguments.all() & (DATA | INPUT | KERNEL)) or WEIGHT
        if name in ("copy", "deepcopy"):
            return arguments.get(0)
        if name == "partial":
            where = (node, "partial")
            self.heap.add(("item", where, "function"), arguments.get(0))
            for index, value in enumerate(arguments.pos[1:]):
                self.heap.add(("item", where, index), value)
            for keyword, value in arguments.kw.items():
                self.heap.add(("keyword", where, keyword), value)
            self.heap.add(("rest", where), arguments.star | arguments.kwstar)
            self.lengths[where] = max(len(arguments.pos) - 1, 0)
            return one("partial", where)
        if name == "reduce":
            return self.call_reduce(arguments, node)
        if name == "cached_property":
            return frozenset(("property", atom[1]) for atom in callables(arguments.all()) if atom[0] == "func")
        if name == "namedtuple":
            return one("ext", "types.SimpleNamespace")  # holds what it is given, too
        if name == "defaultdict":
            made = self.call(callables(arguments.get(0)), Arguments(), node)
            return self.container(node, made | self.elements(arguments.after(1).all(), node), "made")
        return self.container(node, self.gathered(path, arguments, node), "made")

    def gathered(self, path, arguments, node):
        """What a function of itertools or collections gives: all that it gets, and what the functions among it give."""
        functions = callables(arguments.all()) | frozenset(a for a in arguments.all() if a[0] in ("ext", "member"))
        inside = frozenset().union(*(self.elements(level, node) for level in self.flat(arguments.all() - functions, node)))
        inside |= arguments.all() - functions
        if path == "itertools.accumulate" and not functions:
            functions = one("ext", "operator.add")
        for _ in range(2 if functions else 0):
            inside |= self.call(functions, Arguments([], inside, {}, NOTHING), node)
        return inside

    def call_reduce(self, arguments, node):
        inside = self.elements(arguments.get(1), node) | arguments.get(2)
        for _ in range(2):
            inside |= self.call(arguments.get(0), Arguments([inside, inside]), node)
        return inside

    def call_operator(self, name, arguments, node):
        if self.forward and any(tensor_kinds(part) for part in self.flat(arguments.all(), node)):
            self.find("tensor-operator", node, f"operator.{name} works on a tensor", what=f"operator.{name}")
            return DATA
        return arguments.all() & (UNKNOWN | WEIGHT) or PLAIN
