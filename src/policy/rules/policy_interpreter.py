"""Follows what runs when ModelNew is imported, made and called, without running it.

An abstract interpretation: a value is the set of what it may be (policy_values), names of functions are followed in
the order of their statements, and what is kept in objects, containers and the module is the sum of all that is ever
put there. The program is gone through until that sum no longer grows; the last pass gives the findings.
"""

import ast

from policy_builtins import Builtins
from policy_calls import Calls
from policy_expressions import Expressions
from policy_objects import Objects
from policy_statements import Statements
from policy_values import INPUT, UNKNOWN, Arguments, Frame, Heap

LONGEST_SOURCE = 160
# Run when an object is made: there they are followed already.
MAKING = {"__init__", "__new__", "__post_init__", "__init_subclass__"}


class TooMuchWork(Exception):
    """The file takes more steps than the limits allow."""


class Interpreter(Statements, Expressions, Calls, Builtins, Objects):
    def __init__(self, tree, source, config):
        self.tree, self.config = tree, config
        self.lines = source.split("\n")
        self.heap = Heap()
        self.scopes, self.owner, self.owner_me = {}, {}, {}
        self.base_order, self.fields, self.lengths, self.containers = {}, {}, {}, {}
        self.instances = set()
        self.decorating = {name for name in config.category if config.category[name] == "decorators"}
        self.rebound = {name for n in ast.walk(tree) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        self.steps = 0
        self.begin_pass()

    def begin_pass(self):
        self.findings, self.done, self.running, self.variants = {}, {}, set(), {}
        self.chain = []
        self.forward = False  # whether what runs now belongs to a call of the model
        self.in_fallback = False
        self.in_condition = False
        self.kernel_touches, self.kernel_called = 0, False
        self.heap.changed = False

    def check(self):
        """The findings, in the order of their lines."""
        for _ in range(self.config.limits["passes"]):
            self.begin_pass()
            self.follow_program()
            if not self.heap.changed:
                break
        else:
            self.find("too-deep", self.tree, "what the file keeps where does not settle")
        return sorted(self.findings.values(), key=lambda f: (f["line"], f["column"], f["rule"]))

    def follow_program(self):
        self.chain = ["import"]
        module = Frame(self.tree, (self.tree,))
        self.run(self.tree.body, module)
        models = [atom for atom in self.heap.get(("var", self.tree, "ModelNew")) if atom[0] == "class"]
        others = [a for a in self.heap.get(("var", self.tree, "ModelNew")) if a[0] != "class"]
        if not models or others:
            self.find("no-model", self.tree, "the file defines no class ModelNew that can be followed")
            return
        for atom in models:
            self.follow_model(atom[1])
        self.follow_special_methods()
        if not self.kernel_called:
            self.find("no-own-kernel", models[0][1], "forward calls nothing of cuda_extension", what="cuda_extension")

    def follow_model(self, cls):
        me = ("inst", cls)
        self.chain = []
        self.instantiate(cls, Arguments([], UNKNOWN, {}, UNKNOWN), cls)
        self.forward = True
        call = self.lookup_class(cls, "__call__") and "__call__" or "forward"
        method = self.attribute(frozenset((me,)), call, cls)
        if call == "__call__":
            method = frozenset((me,))
        self.call(method, Arguments([], INPUT, {}, INPUT), cls)
        self.forward = False

    def follow_special_methods(self):
        """What Python and nn.Module call by themselves."""
        called_by_torch = self.config.layers["called_by_torch"]
        self.forward = True
        for cls in sorted(self.instances, key=lambda node: node.lineno):
            layer = self.is_layer(cls)
            for part in self.ancestors(cls):
                for key in list(self.heap.parts.get(("cattr", part), ())):
                    name = key[2]
                    special = name.startswith("__") and name.endswith("__") and name not in MAKING
                    if special or (layer and name in called_by_torch):
                        self.chain = [cls.name]
                        for member in self.heap.get(key):
                            if member[0] == "func":
                                self.apply(member[1], Arguments([], UNKNOWN, {}, UNKNOWN), cls, ("inst", cls))
        self.forward = False

    def step(self, node):
        self.steps += 1
        if self.steps > self.config.limits["steps"]:
            raise TooMuchWork()

    def check_path(self, path, node):
        """Whether something outside of the file may be named at all."""
        category, rule = self.config.classify(path)
        if category == "unknown" or category != "refused":
            return True
        self.find(rule, node, f"{path.removeprefix('builtins.')} is used", what=path.removeprefix("builtins."))
        return False

    def find(self, rule, node, message, what=""):
        line = getattr(node, "lineno", 0)
        column = getattr(node, "col_offset", -1) + 1
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        # col_offset counts bytes of UTF-8.
        column = len(text.encode()[: column - 1].decode(errors="ignore")) + 1 if column > 0 else 0
        chain = self.chain + ([what] if what else [])
        key = (rule, line, column, message)
        if key not in self.findings:
            self.findings[key] = {
                "rule": rule,
                "line": line,
                "column": column,
                "source": text.strip()[:LONGEST_SOURCE],
                "message": message,
                "reached": " → ".join(chain),
                "hint": self.config.hints.get(rule, ""),
            }
