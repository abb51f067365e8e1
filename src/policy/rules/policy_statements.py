"""Statements: names, branches, loops, definitions, imports."""

import ast

from policy_values import DATA, NOTHING, PLAIN, UNKNOWN, Arguments, Frame, join, one, tensor_kinds

LOOP_PASSES = 6


def is_main_guard(node):
    """`if __name__ == "__main__":` does not run in the judge."""
    test = node.test
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.Eq)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value == "__main__"
    )


class Statements:
    """Each exec_X runs a statement and returns True when control does not go on behind it."""

    def run(self, body, frame):
        for statement in body:
            if self.statement(statement, frame):
                return True
        return False

    def statement(self, node, frame):
        self.step(node)
        method = getattr(self, "exec_" + type(node).__name__, None)
        if method is None:
            self.find("cannot-be-checked", node, f"the statement {type(node).__name__} is not known to the rules")
            return False
        return bool(method(node, frame))

    def exec_Expr(self, node, frame):
        self.eval(node.value, frame)

    def exec_Pass(self, node, frame):
        return False

    exec_Break = exec_Continue = exec_TypeAlias = exec_Pass

    def exec_Return(self, node, frame):
        frame.returned |= self.eval(node.value, frame) if node.value else PLAIN
        return True

    def exec_Raise(self, node, frame):
        for part in (node.exc, node.cause):
            if part is not None:
                self.eval(part, frame)
        return True

    def exec_Assert(self, node, frame):
        self.condition(node.test, frame)
        if node.msg is not None:
            self.eval(node.msg, frame)

    def exec_Global(self, node, frame):
        for name in node.names:
            frame.outer_names[name] = frame.chain[-1:]

    def exec_Nonlocal(self, node, frame):
        for name in node.names:
            frame.outer_names[name] = frame.chain[1:-1]

    def exec_Assign(self, node, frame):
        value = self.eval(node.value, frame)
        for target in node.targets:
            self.assign(target, value, frame)

    def exec_AnnAssign(self, node, frame):
        self.eval(node.annotation, frame)
        if node.value is not None:
            self.assign(node.target, self.eval(node.value, frame), frame)
        elif frame.is_class and isinstance(node.target, ast.Name):
            self.fields.setdefault(frame.node, {})[node.target.id] = None
        if node.value is not None and frame.is_class and isinstance(node.target, ast.Name):
            self.fields.setdefault(frame.node, {})[node.target.id] = None

    def exec_AugAssign(self, node, frame):
        old, new = self.eval(node.target, frame), self.eval(node.value, frame)
        self.assign(node.target, self.binary(type(node.op).__name__, old, new, node), frame)

    def exec_Delete(self, node, frame):
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                self.store_attribute(self.eval(target.value, frame), target.attr, NOTHING, target)
            elif isinstance(target, ast.Subscript):
                self.eval(target.value, frame)
                self.eval(target.slice, frame)

    def exec_If(self, node, frame):
        if is_main_guard(node) and frame.node is self.tree and not self.heap.has(("var", self.tree, "__name__")):
            return self.run(node.orelse, frame)
        self.condition(node.test, frame)
        return self.branches([node.body, node.orelse], frame)

    def branches(self, bodies, frame):
        before, ends = frame.env, []
        for body in bodies:
            frame.env = dict(before)
            if not self.run(body, frame):
                ends.append(frame.env)
        frame.env = before if not ends else ends[0]
        for end in ends[1:]:
            frame.env = join(frame.env, end)
        return not ends

    def exec_For(self, node, frame):
        values = self.elements(self.eval(node.iter, frame), node.iter)
        self.loop(node, frame, lambda: self.assign(node.target, values, frame))

    exec_AsyncFor = exec_For

    def exec_While(self, node, frame):
        self.loop(node, frame, lambda: self.condition(node.test, frame))

    def loop(self, node, frame, begin):
        for _ in range(LOOP_PASSES):
            before = dict(frame.env)
            begin()
            self.run(node.body, frame)
            frame.env = join(before, frame.env)
            if frame.env == before:
                break
        self.run(node.orelse, frame)

    def exec_With(self, node, frame):
        for item in node.items:
            value = self.eval(item.context_expr, frame)
            entered = self.dunder(value, "__enter__", Arguments(), item.context_expr) or value
            # What a function made by contextlib.contextmanager yields.
            entered |= self.elements(frozenset(atom for atom in value if atom[0] == "site"), item.context_expr)
            self.dunder(value, "__exit__", Arguments([PLAIN, PLAIN, PLAIN]), item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, entered, frame)
        return self.run(node.body, frame)

    exec_AsyncWith = exec_With

    def exec_Try(self, node, frame):
        before, touched = dict(frame.env), self.kernel_touches
        ended = self.run(node.body, frame)
        touched = self.kernel_touches > touched
        after = frame.env
        # A handler may see any of the values that the body gave to a name.
        middle = join(before, after)
        for part in (part for statement in node.body for part in ast.walk(statement)):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                middle[part.id] = middle.get(part.id, NOTHING) | self.heap.get(("var", frame.node, part.id))
        ends = []
        if not ended:
            ended = self.run(node.orelse, frame)
        if not ended:
            ends.append(frame.env)
        for handler in node.handlers:
            frame.env = dict(middle)
            kinds = self.eval(handler.type, frame) if handler.type is not None else NOTHING
            if handler.name:
                self.store_name(handler.name, self.caught(kinds, handler.type), frame)
            outer, self.in_fallback = self.in_fallback, self.in_fallback or touched
            if not self.run(handler.body, frame):
                ends.append(frame.env)
            self.in_fallback = outer
        frame.env = ends[0] if ends else middle
        for end in ends[1:]:
            frame.env = join(frame.env, end)
        return self.run(node.finalbody, frame) or not ends

    exec_TryStar = exec_Try

    def caught(self, kinds, node):
        """What a handler for these classes of exceptions may get: any object of a class of the file may be thrown."""
        sites = frozenset(atom for atom in kinds if atom[0] == "site")
        kinds |= self.elements(sites, node)
        own = [cls for cls in self.instances if self.is_exception(cls)]
        return frozenset(("inst", cls) for cls in own) | one("obj", "builtins.Exception") if kinds else PLAIN

    def is_exception(self, cls):
        return any(path.endswith(("Error", "Exception", "Iteration", "Exit", "Warning")) for path in self.outside_bases(cls))

    def exec_Match(self, node, frame):
        subject = self.eval(node.subject, frame)
        inside = subject | self.elements(subject, node.subject)
        before, ends = dict(frame.env), [dict(frame.env)]
        for case in node.cases:
            frame.env = dict(before)
            for part in ast.walk(case.pattern):
                if isinstance(part, ast.MatchValue):
                    self.compare(subject, self.eval(part.value, frame), part)
                elif isinstance(part, ast.MatchClass):
                    self.eval(part.cls, frame)
                for name in (getattr(part, "name", None), getattr(part, "rest", None)):
                    if isinstance(name, str):
                        self.store_name(name, inside, frame)
            if case.guard is not None:
                self.condition(case.guard, frame)
            if not self.run(case.body, frame):
                ends.append(frame.env)
        frame.env = ends[0]
        for end in ends[1:]:
            frame.env = join(frame.env, end)

    def exec_Import(self, node, frame):
        for alias in node.names:
            rule = self.config.rule_for_import(alias.name)
            if rule:
                self.find(rule, node, f"import {alias.name}", what=alias.name)
            bound = alias.name if alias.asname else alias.name.split(".")[0]
            self.store_name(alias.asname or bound, one("ext", bound), frame)

    def exec_ImportFrom(self, node, frame):
        module = "." * node.level + (node.module or "")
        rule = "import-not-allowed" if node.level else self.config.rule_for_import(module)
        if node.level and (node.module or "").split(".")[0] == "model":
            rule = "reference-model"
        for alias in node.names:
            path = f"{module}.{alias.name}"
            if node.level and not node.module and alias.name == "model":
                rule = "reference-model"
            if rule:
                self.find(rule, node, f"from {module} import {alias.name}", what=module)
            elif alias.name == "*":
                self.find("star-import", node, f"from {module} import *", what=module)
            elif module != "__future__":
                if not self.check_path(path, node):
                    self.store_name(alias.asname or alias.name, UNKNOWN, frame)
                    continue
            if alias.name != "*":
                self.store_name(alias.asname or alias.name, one("ext", path), frame)

    def exec_FunctionDef(self, node, frame):
        value = self.define(node, frame)
        for decorator in reversed(node.decorator_list):
            value = self.call(self.eval(decorator, frame), Arguments([value]), decorator)
        self.store_name(node.name, value, frame)

    exec_AsyncFunctionDef = exec_FunctionDef

    def define(self, node, frame):
        """A function or lambda as a value; defaults are evaluated where it stands."""
        arguments = node.args
        every = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
        for argument in every + [arguments.vararg, arguments.kwarg]:
            if argument is not None and argument.annotation is not None:
                self.eval(argument.annotation, frame)
        if getattr(node, "returns", None) is not None:
            self.eval(node.returns, frame)
        defaults = [self.eval(default, frame) for default in arguments.defaults]
        for argument, default in zip(reversed(arguments.posonlyargs + arguments.args), reversed(defaults)):
            self.heap.add(("default", node, argument.arg), default)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
            if default is not None:
                self.heap.add(("default", node, argument.arg), self.eval(default, frame))
        self.scopes[node] = frame.chain[1:] if frame.is_class else frame.chain
        # A function inside of a method still knows the method's class: super() works there.
        self.owner[node] = frame.node if frame.is_class else frame.cls
        self.owner_me[node] = None if frame.is_class else frame.me
        return one("func", node)

    def exec_ClassDef(self, node, frame):
        if getattr(node, "type_params", None):
            for parameter in node.type_params:
                self.store_name(parameter.name, PLAIN, frame)
        bases = [self.eval(base, frame) for base in node.bases]
        for keyword in node.keywords:
            self.eval(keyword.value, frame)
            if keyword.arg == "metaclass" or keyword.arg is None:
                self.find("class-machinery", node, f"class {node.name} has a metaclass")
        self.heap.add(("bases", node), frozenset().union(*bases))
        self.base_order[node] = bases
        self.check_bases(node, bases)
        inner = Frame(node, (node,) + frame.chain, cls=node, is_class=True)
        self.run(node.body, inner)
        for method in self.lookup_class(node, "__init_subclass__", after=node):
            if method[0] in ("func", "classm"):
                self.apply(method[1], Arguments([], NOTHING, {}, PLAIN), node, ("class", node))
        value = one("class", node)
        for decorator in reversed(node.decorator_list):
            value = self.call(self.eval(decorator, frame), Arguments([value]), decorator)
        self.store_name(node.name, value, frame)

    def check_bases(self, node, bases):
        for base in frozenset().union(*bases):
            if base[0] == "ext":
                category, _ = self.config.classify(base[1])
                if base[1] in ("torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer"):
                    self.find("tensor-subclass", node, f"class {node.name} derives from {base[1]}")
                elif base[1] == "builtins.type" or category in ("computes", "extension", "unknown", "tensor_methods"):
                    self.find("class-machinery", node, f"class {node.name} derives from {base[1]}")
            elif base[0] not in ("class", "plain", "obj", "site"):
                self.find("class-machinery", node, f"the base of class {node.name} cannot be followed")
        for statement in node.body:
            if getattr(statement, "name", "") in ("__torch_function__", "__torch_dispatch__"):
                self.find("tensor-subclass", statement, f"class {node.name} defines {statement.name}")

    def store_name(self, name, value, frame):
        if name in frame.outer_names:
            for scope in frame.outer_names[name]:
                self.heap.add(("var", scope, name), value)
            return
        frame.env[name] = value
        self.heap.add(("cattr" if frame.is_class else "var", frame.node, name), value)

    def assign(self, target, value, frame):
        if isinstance(target, ast.Name):
            self.store_name(target.id, value, frame)
        elif isinstance(target, (ast.Tuple, ast.List)):
            for index, part in enumerate(target.elts):
                if isinstance(part, ast.Starred):
                    self.assign(part.value, self.container(target, self.elements(value, target), "star"), frame)
                else:
                    self.assign(part, self.element(value, index, len(target.elts), target), frame)
        elif isinstance(target, ast.Attribute):
            self.store_attribute(self.eval(target.value, frame), target.attr, value, target)
        elif isinstance(target, ast.Subscript):
            self.store_item(self.eval(target.value, frame), target, value, frame)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value, frame)

    def store_item(self, into, target, value, frame):
        index = self.eval(target.slice, frame)
        if tensor_kinds(into):
            self.check_index(index, target)
        if any(atom[0] == "ext" for atom in into):
            self.find("patches-modules", target, "an item of something outside of the file is replaced")
        self.dunder(into, "__setitem__", Arguments([index, value]), target)
        for atom in into:
            if atom[0] == "site":
                self.heap.add(("rest", atom[1]), value | (index if tensor_kinds(index) else NOTHING))
            elif atom[0] == "inst":
                self.heap.add(("rest", (atom[1], "own")), value)
            elif atom[0] == "member":
                self.heap.add(("named", "*"), value)
        if self.forward and any(atom[0] == "unknown" for atom in into) and tensor_kinds(value):
            self.heap.add(("named", "*"), DATA)
