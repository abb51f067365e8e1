"""Expressions: names, operators, subscripts, comprehensions."""

import ast
import builtins

from policy_values import (
    DATA,
    KERNEL,
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

LONGEST_TEXT = 64

# Operators that a class of the file may define.
DUNDER = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv", "Mod": "mod", "Pow": "pow",
    "MatMult": "matmul", "LShift": "lshift", "RShift": "rshift", "BitAnd": "and", "BitOr": "or", "BitXor": "xor",
}  # fmt: skip
SIGNS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**", "MatMult": "@",
    "LShift": "<<", "RShift": ">>", "BitAnd": "&", "BitOr": "|", "BitXor": "^", "USub": "-", "UAdd": "+", "Invert": "~",
}  # fmt: skip


class Expressions:
    """Each eval_X gives the value that an expression may have."""

    def eval(self, node, frame):
        self.step(node)
        method = getattr(self, "eval_" + type(node).__name__, None)
        if method is None:
            self.find("cannot-be-checked", node, f"the expression {type(node).__name__} is not known to the rules")
            return UNKNOWN
        return method(node, frame)

    def eval_Constant(self, node, frame):
        if isinstance(node.value, str) and len(node.value) <= LONGEST_TEXT:
            return one("str", node.value)
        return PLAIN

    def eval_Name(self, node, frame):
        value = self.look_up(node.id, frame)
        for atom in value:
            # Modules were looked at when they were imported.
            if atom[0] == "ext" and atom[1].startswith("builtins."):
                self.check_path(atom[1], node)
        return value

    def look_up(self, name, frame):
        if name in frame.outer_names:
            return frozenset().union(*(self.heap.get(("var", s, name)) for s in frame.outer_names[name]))
        if name in frame.env:
            # A function called meanwhile may have given another value to a name that it calls global or nonlocal.
            shared = self.heap.get(("var", frame.node, name)) if name in self.rebound else NOTHING
            return frame.env[name] | shared
        for scope in frame.chain:
            if self.heap.has(("var", scope, name)):
                return self.heap.get(("var", scope, name))
        if hasattr(builtins, name) or name in ("__builtins__", "__spec__", "__loader__"):
            return PLAIN if name in ("__name__", "__doc__", "__package__") else one("ext", "builtins." + name)
        return PLAIN if name in ("__file__", "__qualname__", "__module__") else UNKNOWN

    def eval_Attribute(self, node, frame, inner=False):
        if isinstance(node.value, ast.Attribute):
            value = self.eval_Attribute(node.value, frame, inner=True)
        else:
            value = self.eval(node.value, frame)
        return self.attribute(value, node.attr, node, inner)

    def eval_NamedExpr(self, node, frame):
        value = self.eval(node.value, frame)
        self.store_name(node.target.id, value, frame)
        return value

    def eval_Call(self, node, frame):
        callee = self.eval(node.func, frame)
        arguments = Arguments()
        for part in node.args:
            if isinstance(part, ast.Starred):
                arguments.star |= self.elements(self.eval(part.value, frame), part.value)
            else:
                arguments.pos.append(self.eval(part, frame))
        for keyword in node.keywords:
            value = self.eval(keyword.value, frame)
            if keyword.arg is None:
                arguments.kwstar |= self.elements(value, keyword.value)
            else:
                arguments.kw[keyword.arg] = value
        return self.call(callee, arguments, node, frame)

    def eval_BinOp(self, node, frame):
        left, right = self.eval(node.left, frame), self.eval(node.right, frame)
        return self.binary(type(node.op).__name__, left, right, node)

    def binary(self, operator, left, right, node):
        kinds = tensor_kinds(left) | tensor_kinds(right)
        never_numbers = operator == "MatMult" and not self.own_objects(left | right)
        if self.forward and (kinds or never_numbers):
            self.find("tensor-operator", node, f"the operator {SIGNS[operator]} works on a tensor", what=SIGNS[operator])
            return DATA
        own = self.dunder(left, f"__{DUNDER[operator]}__", Arguments([right]), node)
        own |= self.dunder(right, f"__r{DUNDER[operator]}__", Arguments([left]), node)
        own |= self.dunder(left, f"__i{DUNDER[operator]}__", Arguments([right]), node)
        if kinds:
            return own | WEIGHT
        sites = frozenset(atom for atom in left | right if atom[0] == "site")
        if sites and operator in ("Add", "Mult", "BitOr"):
            return self.container(node, self.elements(sites, node), "joined") | own
        rest = (left | right) & UNKNOWN
        return own | (rest or PLAIN)

    @staticmethod
    def own_objects(value):
        return any(atom[0] == "inst" for atom in value)

    def eval_UnaryOp(self, node, frame):
        value = self.eval(node.operand, frame)
        if isinstance(node.op, ast.Not):
            self.truth(value, node.operand)
            return PLAIN
        sign = SIGNS[type(node.op).__name__]
        if tensor_kinds(value):
            if self.forward:
                self.find("tensor-operator", node, f"the operator {sign} works on a tensor", what=sign)
                return DATA
            return WEIGHT
        name = {"USub": "__neg__", "UAdd": "__pos__", "Invert": "__invert__"}[type(node.op).__name__]
        return self.dunder(value, name, Arguments(), node) or (value & UNKNOWN) or PLAIN

    def eval_BoolOp(self, node, frame):
        values = [self.eval(part, frame) for part in node.values]
        for value, part in zip(values[:-1], node.values):
            self.truth(value, part)
        return frozenset().union(*values)

    def eval_Compare(self, node, frame):
        left, result = self.eval(node.left, frame), PLAIN
        for operator, part in zip(node.ops, node.comparators):
            right = self.eval(part, frame)
            if isinstance(operator, (ast.In, ast.NotIn)):
                self.dunder(right, "__contains__", Arguments([left]), node)
                # A key is looked for by its hash, an element of a list by comparison.
                if tensor_kinds(left) - {"scalar"}:
                    result |= self.compare(left, PLAIN, node)
            elif not isinstance(operator, (ast.Is, ast.IsNot)):
                result |= self.compare(left, right, node)
            left = right
        return result

    def compare(self, left, right, node):
        for name in ("__eq__", "__ne__", "__lt__", "__gt__", "__le__", "__ge__"):
            self.dunder(left, name, Arguments([right]), node)
            self.dunder(right, name, Arguments([left]), node)
        kinds = tensor_kinds(left) | tensor_kinds(right)
        if not kinds or texts(left) or texts(right):  # a tensor never equals a text
            return PLAIN
        if self.in_condition and kinds <= {"input", "scalar"} and not (tensor_kinds(left) and tensor_kinds(right)):
            return PLAIN  # a number that forward gets
        if self.forward:
            self.find("tensor-operator", node, "a comparison works on a tensor", what="comparison")
            return DATA
        return WEIGHT

    def eval_IfExp(self, node, frame):
        self.condition(node.test, frame)
        return self.eval(node.body, frame) | self.eval(node.orelse, frame)

    def eval_Lambda(self, node, frame):
        return self.define(node, frame)

    def eval_JoinedStr(self, node, frame):
        for part in node.values:
            self.eval(part, frame)
        return PLAIN

    eval_TemplateStr = eval_JoinedStr

    def eval_FormattedValue(self, node, frame):
        self.reads(self.eval(node.value, frame), node.value, "a text is made of a tensor")
        if node.format_spec is not None:
            self.eval(node.format_spec, frame)
        return PLAIN

    eval_Interpolation = eval_FormattedValue

    def eval_Tuple(self, node, frame):
        where = (node, "display")
        for index, part in enumerate(node.elts):
            if isinstance(part, ast.Starred):
                self.heap.add(("rest", where), self.elements(self.eval(part.value, frame), part.value))
            else:
                self.heap.add(("item", where, index), self.eval(part, frame))
        self.lengths[where] = None if any(isinstance(part, ast.Starred) for part in node.elts) else len(node.elts)
        return one("site", where)

    eval_List = eval_Tuple

    def eval_Set(self, node, frame):
        return self.container(node, frozenset().union(*(self.eval(part, frame) for part in node.elts)), "set")

    def eval_Dict(self, node, frame):
        where = (node, "display")
        for key, part in zip(node.keys, node.values):
            value = self.eval(part, frame)
            if key is None:
                self.heap.add(("rest", where), self.elements(value, part))
                continue
            name = self.eval(key, frame)
            if tensor_kinds(name) or callables(name):
                self.heap.add(("rest", where), name)
            fixed = isinstance(key, ast.Constant) and isinstance(key.value, (str, int))
            self.heap.add(("item", where, key.value) if fixed else ("rest", where), value)
        return one("site", where)

    def comprehension(self, node, parts, frame):
        before = dict(frame.env)
        for generator in node.generators:
            self.assign(generator.target, self.elements(self.eval(generator.iter, frame), generator.iter), frame)
            for test in generator.ifs:
                self.condition(test, frame)
        result = frozenset().union(*(self.eval(part, frame) for part in parts))
        targets = {p.id for g in node.generators for p in ast.walk(g.target) if isinstance(p, ast.Name)}
        for name in targets:
            frame.env.pop(name, None)
            if name in before:
                frame.env[name] = before[name]
        return self.container(node, result, "comprehension")

    def eval_ListComp(self, node, frame):
        return self.comprehension(node, [node.elt], frame)

    eval_SetComp = eval_GeneratorExp = eval_ListComp

    def eval_DictComp(self, node, frame):
        return self.comprehension(node, [node.key, node.value], frame)

    def eval_Starred(self, node, frame):
        return self.eval(node.value, frame)

    def eval_Await(self, node, frame):
        return self.eval(node.value, frame)

    def eval_Yield(self, node, frame):
        value = self.eval(node.value, frame) if node.value is not None else PLAIN
        self.heap.add(("rest", (frame.node, "yield")), value)
        return self.heap.get(("sent", (frame.node, "yield"))) | PLAIN

    def eval_YieldFrom(self, node, frame):
        value = self.eval(node.value, frame)
        self.heap.add(("rest", (frame.node, "yield")), self.elements(value, node.value))
        sites = [atom[1] for atom in value if atom[0] == "site"]
        for where in sites:
            self.heap.add(("sent", where), self.heap.get(("sent", (frame.node, "yield"))))
        return frozenset().union(*(self.heap.get(("returned", where)) for where in sites)) | PLAIN

    def eval_Slice(self, node, frame):
        parts = [self.eval(part, frame) for part in (node.lower, node.upper, node.step) if part is not None]
        for value in parts:
            self.reads(value, node, "a slice ends at a value of a tensor")
        return PLAIN

    def eval_Subscript(self, node, frame):
        value, index = self.eval(node.value, frame), self.eval(node.slice, frame)
        if tensor_kinds(value):
            self.check_index(index, node)
        constant = self.constant(node.slice)
        return frozenset().union(*(self.item(atom, constant, index, node) for atom in value))

    @staticmethod
    def constant(node):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return -node.operand.value if isinstance(node.operand.value, int) else None
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, (int, str)) else None

    def item(self, atom, constant, index, node):
        kind = atom[0]
        if kind == "tensor":
            return one("tensor", "data") if atom[1] == "input" and not isinstance(constant, str) else one(*atom)
        if kind == "member" and atom[1][0] == "tensor":
            return one(*atom[1])
        if kind == "site":
            return self.site_item(atom[1], constant, node)
        if kind == "inst":
            own = self.dunder(frozenset((atom,)), "__getitem__", Arguments([index]), node)
            return own or self.elements(frozenset((atom,)), node)
        if kind == "holder":
            return one("holder", atom[1]) | WEIGHT
        if kind in ("unknown", "obj", "member"):
            return UNKNOWN | self.heap.get(("named", "*"))
        return frozenset((atom,)) if kind in ("class", "ext") else PLAIN

    def site_item(self, where, constant, node):
        if isinstance(constant, int) and constant < 0 and self.lengths.get(where) is not None:
            constant += self.lengths[where]
        key = ("item", where, constant)
        if constant is not None and self.heap.has(key):
            return self.heap.get(key) | self.heap.get(("rest", where))
        return self.elements(one("site", where), node)

    def check_index(self, index, node):
        """A tensor or a list as an index gathers; numbers, slices and tuples of them make a view."""
        inside = index
        for atom in index:
            if atom[0] == "site" and isinstance(atom[1][0], ast.Tuple):
                inside = (inside - {atom}) | self.elements(frozenset((atom,)), node)
        gathers = tensor_kinds(inside) - {"scalar"} or any(atom[0] == "site" for atom in inside)
        if self.forward and gathers:
            self.find("tensor-index", node, "a tensor or a list is used as an index", what="index")

    def condition(self, node, frame):
        """An expression of which only the truth counts."""
        if isinstance(node, ast.BoolOp):
            for part in node.values:
                self.condition(part, frame)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.condition(node.operand, frame)
        elif isinstance(node, ast.Compare):
            left_and_right = [node.left, *node.comparators]
            self.in_condition = all(isinstance(part, (ast.Name, ast.Constant, ast.Attribute)) for part in left_and_right)
            value = self.eval(node, frame)
            self.in_condition = False
            self.truth(value, node)
        else:
            self.truth(self.eval(node, frame), node)

    def truth(self, value, node):
        """A value is used as a condition."""
        self.dunder(value, "__bool__", Arguments(), node)
        self.dunder(value, "__len__", Arguments(), node)
        self.reads(value, node, "a tensor is used as a condition")

    def reads(self, value, node, what):
        """Python needs the numbers in a tensor. What forward gets may be a number itself."""
        if self.forward and tensor_kinds(value) - {"input", "scalar"}:
            self.find("reads-values", node, what)

    def element(self, value, index, count, node):
        """The part at a place when a value is unpacked into `count` names."""
        result = NOTHING
        for atom in value:
            if atom[0] == "site" and self.lengths.get(atom[1]) == count and not self.heap.get(("rest", atom[1])):
                result |= self.heap.get(("item", atom[1], index))
            else:
                result |= self.elements(frozenset((atom,)), node)
        return result

    def elements(self, value, node):
        """What iteration over a value may give, and what a container may hold."""
        result = NOTHING
        for atom in value:
            if atom[0] == "site":
                result |= self.heap.get(("rest", atom[1]))
                result |= self.heap.all("item", atom[1])
            elif atom[0] == "tensor":
                result |= frozenset((atom,))
            elif atom[0] == "member" and atom[1][0] == "tensor":
                result |= frozenset((atom[1],))
            elif atom[0] == "inst":
                result |= self.inst_elements(atom, node)
            elif atom[0] == "holder":
                result |= one("holder", atom[1]) | WEIGHT
            elif atom[0] in ("unknown", "obj", "member"):
                result |= UNKNOWN
            elif atom[0] == "ext" and self.config.classify(atom[1])[0] == "extension":
                result |= KERNEL
            else:
                result |= PLAIN
        return result

    def inst_elements(self, atom, node):
        me = frozenset((atom,))
        own = self.dunder(me, "__iter__", Arguments(), node)
        if own and own != me:
            return self.elements(own - me, node)
        step = self.dunder(me, "__next__", Arguments(), node) | self.dunder(me, "__getitem__", Arguments([PLAIN]), node)
        return step or self.heap.all("attr", atom[1]) | self.heap.get(("rest", (atom[1], "own")))

    def container(self, node, inside, tag):
        where = (node, tag)
        self.heap.add(("rest", where), inside)
        return one("site", where)
