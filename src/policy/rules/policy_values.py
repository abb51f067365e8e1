"""What a value may be: a set of atoms, each a tuple.

("tensor", kind)      kind: input (what forward gets), data (made from inputs), kernel (what the extension returned),
                      scalar (the same, where it got no tensor), weight (parameters, buffers, what __init__ made),
                      fresh (memory made in forward)
("plain",)            a number, a text, a shape: no tensor
("str", text)         a text that is known
("dtype",) ("device",)
("refused",)          what something gives that is refused and computes nothing: said once, where it is used
("unknown",)          what the constructor gets, and what is made from it
("ext", path)         something outside of the file, by its dotted name
("func", node)        a function or lambda of the file
("bound", node, me)   a method with its first argument
("class", node) ("inst", node) ("super", node, me)
("static", node) ("classm", node) ("property", node)
("holder", path)      an nn layer
("site", where)       a container, by the place that makes it
("partial", where)
("obj", path)         an instance of an allowed class of somebody else
("member", atom, name)  an attribute that is looked at once it is called
("autograd", node)    MyFunction.apply
"""

NOTHING = frozenset()


def one(*atom):
    return frozenset((atom,))


PLAIN = one("plain")
UNKNOWN = one("unknown")
REFUSED = one("refused")
DTYPE = one("dtype")
DEVICE = one("device")
INPUT = one("tensor", "input")
DATA = one("tensor", "data")
KERNEL = one("tensor", "kernel")
SCALAR = one("tensor", "scalar")
WEIGHT = one("tensor", "weight")
FRESH = one("tensor", "fresh")


def tensor_kinds(value):
    """The kinds of tensor that a value may be."""
    kinds = {atom[1] for atom in value if atom[0] == "tensor"}
    # x.size without a call may be a field of a named tuple that forward gets.
    kinds |= {atom[1][1] for atom in value if atom[0] == "member" and atom[1][0] == "tensor"}
    return kinds


def texts(value):
    """The texts that a value may be, or None when it may be something else."""
    if value and all(atom[0] == "str" for atom in value):
        return sorted(atom[1] for atom in value)
    return None


def callables(value):
    """Those atoms that would run code when called."""
    kinds = ("func", "bound", "class", "partial", "autograd", "static", "classm")
    return frozenset(atom for atom in value if atom[0] in kinds)


class Arguments:
    """What a call passes."""

    __slots__ = ("pos", "star", "kw", "kwstar")

    def __init__(self, pos=(), star=NOTHING, kw=None, kwstar=NOTHING):
        self.pos, self.star, self.kw, self.kwstar = list(pos), star, kw or {}, kwstar

    def all(self):
        return frozenset().union(*self.pos, self.star, *self.kw.values(), self.kwstar)

    def get(self, index, name=""):
        """The argument at a place or of a name; nothing when it is not passed."""
        value = self.pos[index] if index < len(self.pos) else self.star
        return value | self.kw.get(name, NOTHING) | (self.kwstar if index >= len(self.pos) else NOTHING)

    def after(self, count):
        return Arguments(self.pos[count:], self.star, self.kw, self.kwstar)


class Frame:
    """A scope that runs: a function, a class body or the module."""

    __slots__ = ("node", "chain", "env", "cls", "me", "returned", "outer_names", "is_class")

    def __init__(self, node, chain, cls=None, me=None, is_class=False):
        self.node, self.chain, self.cls, self.me = node, chain, cls, me
        self.env, self.returned, self.outer_names = {}, NOTHING, {}
        self.is_class = is_class


class Heap:
    """What may be kept where, over the whole run of the program. It only grows."""

    def __init__(self):
        self.cells = {}
        self.parts = {}
        self.changed = False

    def add(self, key, value):
        old = self.cells.get(key)
        if old is None:
            self.parts.setdefault(key[:2], []).append(key)
            old = NOTHING
        elif value <= old:
            return
        self.cells[key] = old | value
        self.changed = True

    def get(self, key):
        return self.cells.get(key, NOTHING)

    def has(self, key):
        return key in self.cells

    def all(self, kind, owner):
        """Everything that one owner keeps under any name."""
        return frozenset().union(*(self.cells[key] for key in self.parts.get((kind, owner), ())))


def join(first, second):
    """Environments of two branches that meet."""
    return {name: first.get(name, NOTHING) | second.get(name, NOTHING) for name in first.keys() | second.keys()}
