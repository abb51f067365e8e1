#include "cli/task_reader_script.hpp"

namespace cuda_agent::cli {

std::string_view task_reader_script() {
  return R"python(
import ast, json, sys

path, kernel = sys.argv[1:3]
wanted = ("get_inputs", "get_init_inputs")


def answer(**result):
    print(json.dumps(result))
    sys.exit(0)


try:
    with open(path, encoding="utf-8-sig") as file:
        text = file.read()
    tree = ast.parse(text)
except SyntaxError as error:
    answer(error="line %s: %s" % (error.lineno, error.msg))
except (OSError, UnicodeDecodeError, ValueError) as error:
    answer(error=str(error))
lines = text.splitlines(keepends=True)


def bound(node):
    """The names that a top-level statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.Import):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    if isinstance(node, (ast.If, ast.Try, ast.With, ast.For)):
        guard = ast.dump(node.test) if isinstance(node, ast.If) else ""
        return set() if "__main__" in guard else set().union(*[bound(part) for part in ast.iter_child_nodes(node)], set())
    return set()


def used(node):
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    for part in ast.walk(node):  # annotations may be strings
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and len(part.value) < 200:
            try:
                inner = ast.parse(part.value, mode="eval")
            except (SyntaxError, ValueError):
                continue
            names |= {piece.id for piece in ast.walk(inner) if isinstance(piece, ast.Name)}
    return names


def source(node):
    first = min([node.lineno] + [item.lineno for item in getattr(node, "decorator_list", [])])
    return "".join(lines[first - 1 : node.end_lineno]).rstrip() + "\n"


defined = {name for node in tree.body for name in bound(node)}
models = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"]
if not models:
    answer(error="it defines no class Model")
for name in wanted:
    if name not in defined:
        answer(error="it defines no %s()" % name)
model = models[-1]
forwards = [node for node in model.body if isinstance(node, ast.FunctionDef) and node.name == "forward"]

# What the class uses, and what that uses.
kept, names = set(), used(model)
others = [node for node in tree.body if node is not model and not bound(node) & set(wanted)]
while True:
    more = [i for i, node in enumerate(others) if i not in kept and bound(node) & names]
    if not more:
        break
    for i in more:
        kept.add(i)
        names |= used(others[i])
future = [node for node in others if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
imports = [others[i] for i in sorted(kept) if isinstance(others[i], (ast.Import, ast.ImportFrom))]
imports = [node for node in imports if node not in future]
helpers = [others[i] for i in sorted(kept) if others[i] not in imports and others[i] not in future]

import_lines = [source(node) for node in imports]
for line in ("import torch\n", "import torch.nn as nn\n"):
    if line not in import_lines:
        import_lines.append(line)


def renamed(node):
    """The class's source with Model called ModelNew, without forward."""
    raw = [line.encode() for line in lines]
    places = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == "Model"]
    for part in sorted(places, key=lambda part: (part.lineno, part.col_offset), reverse=True):
        line = raw[part.lineno - 1]
        raw[part.lineno - 1] = line[: part.col_offset] + b"ModelNew" + line[part.end_col_offset :]
    start = node.body[0].lineno - 1
    skip = set()
    for forward in forwards:
        first = min([forward.lineno] + [item.lineno for item in forward.decorator_list])
        end = forward.end_lineno
        while end < node.end_lineno and not lines[end].strip():
            end += 1
        skip |= set(range(first - 1, end))
    # Lines between the head of the class and its first statement are comments.
    head_end = max([part.end_lineno for part in node.bases + [k.value for k in node.keywords]] + [node.lineno])
    start = min(start, head_end) if node.body[0].lineno > head_end else start
    body = [raw[i].decode() for i in range(start, node.end_lineno) if i not in skip]
    return "".join(body).rstrip() + "\n" if "".join(body).strip() else ""


bases = ", ".join([ast.unparse(base) for base in model.bases] + [ast.unparse(item) for item in model.keywords])
indent = " " * (model.body[0].col_offset or 4)
if model.body[0].lineno == model.lineno:
    answer(error="class Model is written on one line")

out = ['"""The candidate: replace PyTorch\'s operators of Model (model.py) by kernels of your own."""\n\n']
out += [source(node) for node in future] + (["\n"] if future else [])
plain = [line for line in import_lines if "torch" not in line]
out += plain + (["\n"] if plain else []) + [line for line in import_lines if "torch" in line]
out += ["\nimport cuda_extension\n"]
for node in helpers:
    gap = "\n\n" if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else "\n"
    out += [gap, source(node)]
out += ["\n\nclass ModelNew(%s):\n" % bases if bases else "\n\nclass ModelNew:\n"]
body = renamed(model)
out += [body, "\n" if body else ""]

forward = forwards[-1] if forwards else None
arguments = ast.unparse(forward.args) if forward else "self, *args"
returns = " -> " + ast.unparse(forward.returns) if forward and forward.returns else ""
first_input = "x"
if forward:
    given = forward.args.posonlyargs + forward.args.args
    first_input = given[1].arg if len(given) > 1 else "x"
out += ["%sdef forward(%s)%s:\n" % (indent, arguments, returns)]
step = indent * 2
out += [step + "# Begin here. Model's forward (model.py) is:\n", step + "#\n"]
statements = forward.body if forward else []
if statements and isinstance(statements[0], ast.Expr) and isinstance(getattr(statements[0].value, "value", None), str):
    statements = statements[1:]  # the docstring
if statements:
    block = lines[statements[0].lineno - 1 : statements[-1].end_lineno]
    if statements[0].lineno == forward.lineno:  # def and body on one line
        block = ["\n".join(ast.unparse(node) for node in statements)]
    margin = len(block[0]) - len(block[0].lstrip())
    for line in block:
        line = line.rstrip()
        line = line[margin:] if not line[:margin].strip() else line.lstrip()
        out += [(step + "#     " + line).rstrip() + "\n"]
out += [step + "#\n"]
out += [step + "# kernels/%s.cu and kernels/%s_cpu.cpp hold a kernel that copies its input, and\n" % (kernel, kernel)]
out += [step + "# kernels/%s_binding.cpp makes it callable from here:\n" % kernel, step + "#\n"]
out += [step + "#     return cuda_extension.%s_forward(%s)\n" % (kernel, first_input)]
out += [step + "#\n", step + "# Make it compute what the lines above do, then call it in their place.\n"]
out += [step + "raise NotImplementedError(\n"]
out += [step + '    "ModelNew.forward is not written yet: see kernels/%s_binding.cpp and model_new.py"\n' % kernel]
out += [step + ")\n"]
result = "".join(out)
try:
    ast.parse(result)
except SyntaxError as error:
    answer(error="no skeleton can be made from it (line %s of the skeleton: %s)" % (error.lineno, error.msg))
answer(model_new=result)
)python";
}

}  // namespace cuda_agent::cli
