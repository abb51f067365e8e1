"""Files that break a rule: (rule, name, text). Each is a detour that somebody may take."""

from policy_harness import file

CASES = []


def case(rule, name, text):
    CASES.append((rule, name, text))


def forward(rule, name, body, **more):
    case(rule, name, file(body, **more))


K = "y = cuda_extension.relu(x)\n"

# torch functions, by every name they can have
forward("torch-compute", "plain", "return torch.relu(x)")
forward("torch-compute", "functional", K + "return F.softmax(y, dim=-1)")
forward("torch-compute", "functional renamed", K + "return G.relu(y)", before="import torch.nn.functional as G\n")
forward("torch-compute", "functional through nn", K + "return nn.functional.relu(y)")
forward("torch-compute", "from import renamed", K + "return r(y)", before="from torch import relu as r\n")
forward("torch-compute", "from functional", K + "return linear(y, self.w)", before="from torch.nn.functional import linear\n")
forward("torch-compute", "alias in the module", K + "return f(y)", before="f = torch.relu\n")
forward("torch-compute", "alias in forward", K + "f = torch.relu\nreturn f(y)")
forward("torch-compute", "alias of torch", K + "return t.exp(y)", before="import torch as t\n")
forward("torch-compute", "torch as a value", K + "t = torch\nreturn t.exp(y)")
forward("torch-compute", "kept in self", K + "return self.act(y)", init="self.act = torch.tanh\n")
forward("torch-compute", "kept in the class", K + "return self.act(y)", methods="act = staticmethod(torch.tanh)\n")
forward("torch-compute", "by getattr", K + "return getattr(torch, 'relu')(y)")
forward("torch-compute", "by getattr renamed", K + "g = getattr\nname = 'relu'\nreturn g(torch, name)(y)")
forward("torch-compute", "in a dict", K + "return OPS['relu'](y)", before="OPS = {'relu': torch.relu, 'exp': torch.exp}\n")
forward("torch-compute", "in a list", K + "for f in [torch.exp, torch.relu]:\n    y = f(y)\nreturn y")
forward("torch-compute", "lambda", K + "return (lambda v: torch.relu(v))(y)")
forward("torch-compute", "lambda in self", K + "return self.f(y)", init="self.f = lambda v: torch.relu(v)\n")
forward("torch-compute", "partial", K + "return functools.partial(F.softmax, dim=-1)(y)")
forward("torch-compute", "partial in self", K + "return self.f(y)", init="self.f = functools.partial(F.softmax, dim=-1)\n")
forward("torch-compute", "map", K + "return list(map(torch.relu, [y]))[0]")
forward("torch-compute", "reduce", K + "return functools.reduce(torch.add, [y, x])")
forward("torch-compute", "comprehension", K + "return [torch.relu(v) for v in [y]][0]")
forward("torch-compute", "default argument", "return self.run(cuda_extension.relu(x))",
        methods="def run(self, v, f=torch.relu):\n    return f(v)\n")  # fmt: skip
forward("torch-compute", "decorator", K + "return act(y)", before="""
    def then_relu(function):
        def run(v):
            return torch.relu(function(v))
        return run

    @then_relu
    def act(v):
        return v
    """)  # fmt: skip
forward("torch-compute", "helper of a helper", "return a(x)", before="""
    def b(v):
        return torch.sigmoid(v)

    def a(v):
        return b(cuda_extension.relu(v))
    """)  # fmt: skip
forward("torch-compute", "property", K + "return self.scale", methods="""
    @property
    def scale(self):
        return torch.exp(self.w)
    """)  # fmt: skip
forward("torch-compute", "base class in the file", K + "return self.finish(y)", before="""
    class Base(nn.Module):
        def finish(self, v):
            return torch.relu(v)

    """, methods="finish = Base.finish\n")  # fmt: skip
forward("torch-compute", "nested class", K + "return self.block(y)", init="self.block = self.Block()\n", methods="""
    class Block(nn.Module):
        def forward(self, v):
            return torch.relu(v)
    """)  # fmt: skip
forward("torch-compute", "object with __call__", K + "return Act()(y)", before="""
    class Act:
        def __call__(self, v):
            return torch.relu(v)
    """)  # fmt: skip
forward("torch-compute", "object with __add__", K + "return Act() + y", before="""
    class Act:
        def __add__(self, v):
            return torch.relu(v)
    """)  # fmt: skip
forward("torch-compute", "object with __getattr__", K + "return Act().anything", before="""
    class Act:
        def __getattr__(self, name):
            return torch.ones(3).relu() if name else torch.relu(torch.ones(3))
    """)  # fmt: skip
forward("torch-compute", "autograd function", "return Relu.apply(x)", before="""
    class Relu(torch.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            return torch.relu(cuda_extension.copy(v))
    """)  # fmt: skip
forward("torch-compute", "closure", K + "return act(y)", before="""
    def make():
        chosen = torch.relu
        def run(v):
            return chosen(v)
        return run

    act = make()
    """)  # fmt: skip
forward("torch-compute", "rebound later", K + "return act(y)", before="""
    act = cuda_extension.copy

    def change():
        global act
        act = torch.relu

    change()
    """)  # fmt: skip
forward("torch-compute", "method set on the class", K + "return self.act(y)",
        init="ModelNew.act = lambda self, v: torch.relu(v)\n")  # fmt: skip
forward("torch-compute", "in a branch that seems dead", K + "if not x.is_cuda:\n    return torch.relu(y)\nreturn y")
forward("torch-compute", "generator", K + "return next(self.parts(y))", methods="""
    def parts(self, v):
        yield torch.relu(v)
    """)  # fmt: skip
forward("torch-compute", "train is overridden", "return cuda_extension.relu(x)",
        methods="def train(self, mode=True):\n    self.y = torch.relu(self.w)\n    return self\n")  # fmt: skip
forward("torch-compute", "walrus and match", K + """
match (z := torch.relu(y)):
    case v:
        return v
""")  # fmt: skip
forward("torch-compute", "cat of results", K + "return torch.cat([y, x])")
forward("torch-compute", "out of an argument", K + "out = torch.empty_like(x)\ntorch.relu(y, out=out)\nreturn out")
forward("torch-compute", "handed to an extension", "return cuda_extension.apply(torch.relu, x)")
forward("torch-compute", "linalg", K + "return torch.linalg.norm(y)")
forward("torch-compute", "random numbers", K + "return torch.randn(3)")
forward("torch-compute", "the word kernel in a comment", "return torch.relu(x)  # two-pass kernel, allowed")
case("torch-compute", "forward is an alias", file().replace("    def forward(self, x):\n        return cuda_extension.relu(x)\n",
     "    def forward(self, x):\n        cuda_extension.relu(x)\n        return F.relu(x)\n    forward = forward\n"))  # fmt: skip
case("torch-compute", "ModelNew is another class", file("return torch.relu(x)").replace("class ModelNew", "class Inner") + "\nModelNew = Inner\n")

# methods
forward("tensor-method", "relu", K + "return y.relu()")
forward("tensor-method", "of an input", K + "return x.sum()")
forward("tensor-method", "in place", K + "y.mul_(2)\nreturn y")
forward("tensor-method", "bound", K + "f = y.relu\nreturn f()")
forward("tensor-method", "by getattr", K + "return getattr(y, 'relu')()")
forward("tensor-method", "of a parameter", "return cuda_extension.scale(x, self.w.exp())")
forward("tensor-method", "through the class", K + "return torch.Tensor.relu(y)")
forward("tensor-method", "conversion", K + "return y.half()")
forward("tensor-method", "conversion by to", K + "return y.to(torch.float16)")
forward("tensor-method", "conversion by to, renamed", K + "kind = x.dtype\nreturn y.to(kind)")
forward("tensor-method", "of a view", K + "return y.view(-1).softmax(0)")
forward("tensor-method", "of new memory", K + "return torch.zeros(3).add(1)")
forward("tensor-method", "of an element of a dict", "return cuda_extension.relu(x['a'].relu())")
forward("tensor-method", "in a helper class", "return Holder(x).run()", before="""
    class Holder:
        def __init__(self, v):
            self.v = cuda_extension.relu(v)

        def run(self):
            return self.v.softmax(-1)
    """)  # fmt: skip
forward("tensor-method", "kwargs", K + "return self.run(v=y)", methods="def run(self, **kw):\n    return kw['v'].relu()\n")
forward("tensor-method", "repeat of a result", K + "return y.repeat(2, 1)")

# operators
forward("tensor-operator", "matmul", "return cuda_extension.relu(x) @ self.w")
forward("tensor-operator", "plus", K + "return x + y")
forward("tensor-operator", "times a number", K + "return y * 2")
forward("tensor-operator", "power", K + "return y ** 2")
forward("tensor-operator", "minus alone", K + "return -y")
forward("tensor-operator", "augmented", K + "y += 1\nreturn y")
forward("tensor-operator", "augmented item", K + "y[0] += 1\nreturn y")
forward("tensor-operator", "comparison", K + "return y > 0")
forward("tensor-operator", "of parameters", "return cuda_extension.scale(x, self.w * 2)")
forward("tensor-operator", "annotated as a number", "cuda_extension.relu(x)\nreturn n * n", arguments="x, n: int")
forward("tensor-operator", "by the operator module", K + "return operator.mul(y, 2)", before="import operator\n")
forward("tensor-operator", "reduce and operator", K + "return functools.reduce(operator.add, [y, x])", before="import operator\n")
forward("tensor-operator", "sum", K + "return sum([y, x])")
forward("tensor-operator", "abs", K + "return abs(y)")
forward("tensor-operator", "max", K + "return max(y, x)")
forward("tensor-operator", "dunder", K + "return y.__add__(1)")
forward("tensor-operator", "through Tensor", K + "return torch.Tensor.__matmul__(y, x)")
forward("tensor-operator", "in a comprehension", K + "return [v * 2 for v in [y]][0]")
forward("tensor-operator", "result without an argument", "cuda_extension.push(x)\nreturn cuda_extension.pop() * 2")

forward("tensor-operator", "comparison as a result", "cuda_extension.f(x)\nz = x > 0\nreturn z")
forward("tensor-operator", "comparison of results as a condition", K + "if y > 0:\n    return y\nreturn x")
forward("tensor-operator", "comparison in a call in a condition", K + "if keep(x > 0) == 0:\n    return y\nreturn KEPT[0]",
        before="KEPT = []\ndef keep(v):\n    KEPT.append(v)\n    return 0\n")  # fmt: skip
forward("tensor-operator", "comparison in the comparison of an own class", K + "if Op() > x:\n    return y\nreturn KEPT[0]",
        before="KEPT = []\nclass Op:\n    def __gt__(self, v):\n        KEPT.append(v > 0)\n        return True\n")  # fmt: skip

# indexing
forward("tensor-index", "gather", K + "return y[cuda_extension.order(x)]")
forward("tensor-index", "gather in a tuple", K + "return y[:, x]")
forward("tensor-index", "list", K + "return y[[0, 1]]")
forward("tensor-index", "scatter", K + "y[cuda_extension.order(x)] = 0\nreturn y")

# layers
forward("layer-call", "linear", "return self.fc(cuda_extension.relu(x))")
forward("layer-call", "its forward", K + "return self.fc.forward(y)")
forward("layer-call", "through the class", K + "return nn.Linear.forward(self.fc, y)")
forward("layer-call", "made in forward", K + "return nn.ReLU()(y)")
forward("layer-call", "sequential", K + "return self.net(y)", init="self.net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())\n")
forward("layer-call", "in a list", K + "for layer in self.layers:\n    y = layer(y)\nreturn y",
        init="self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])\n")  # fmt: skip
forward("layer-call", "by setattr", K + "return self.act(y)", init="setattr(self, 'act', nn.GELU())\n")
forward("layer-call", "by add_module", K + "return self.act(y)", init="self.add_module('act', nn.GELU())\n")
forward("layer-call", "out of _modules", K + "return self._modules['fc'](y)")
forward("layer-call", "dunder call", K + "return self.fc.__call__(y)")
forward("layer-call", "from its own module", K + "return self.c(y)",
        before="from torch.nn.modules.conv import Conv2d as C\n", init="self.c = C(3, 3, 1)\n")  # fmt: skip
case("layer-call", "derives from a layer", file("cuda_extension.relu(x)\nreturn super().forward(x)").replace("nn.Module", "nn.Linear"))
forward("layer-call", "activation by name", K + "return self.acts['gelu'](y)",
        init="self.acts = {'gelu': nn.GELU(), 'relu': nn.ReLU()}\n")  # fmt: skip

# falling back
forward("torch-fallback", "function", "try:\n    return cuda_extension.relu(x)\nexcept Exception:\n    return torch.relu(x)")
forward("torch-fallback", "method", "try:\n    y = cuda_extension.relu(x)\nexcept Exception:\n    y = x.relu()\nreturn y")
forward("torch-fallback", "in a helper", "try:\n    return self.fast(x)\nexcept RuntimeError:\n    return self.slow(x)", methods="""
    def fast(self, v):
        return cuda_extension.relu(v)

    def slow(self, v):
        return torch.relu(v)
    """)  # fmt: skip
forward("torch-compute", "missing extension", "return torch.relu(x) if ext is None else ext.relu(x)", before="""
    try:
        import cuda_extension as ext
    except ImportError:
        ext = None
    """)  # fmt: skip

# values that Python reads
forward("reads-values", "item", "return cuda_extension.scale(x, cuda_extension.total(x).item())")
forward("reads-values", "float", "return cuda_extension.scale(x, float(cuda_extension.total(x)))")
forward("reads-values", "tolist", K + "return torch.tensor([v for v in y.tolist()])")
forward("reads-values", "numpy", K + "return y.numpy()")
forward("reads-values", "condition", K + "return y if y[0] else x")
forward("reads-values", "math", K + "return torch.full((1,), math.exp(y))")
forward("reads-values", "text", K + "return float(f'{y}')")

# the rest of torch
forward("torch-compiler", "compile", K + "return torch.compile(lambda v: v)(y)")
forward("torch-compiler", "compile as a decorator", K + "return f(y)", before="@torch.compile\ndef f(v):\n    return v\n")
forward("torch-compiler", "script", K + "return y", before="@torch.jit.script\ndef f(v):\n    return v\n")
forward("torch-compiler", "the module's own compile", K + "return y", init="self.compile()\n")
forward("torch-internal", "ops", K + "return torch.ops.aten.relu(y)")
forward("torch-internal", "ops kept", K + "return self.f(y)", init="self.f = torch.ops.aten.relu.default\n")
forward("torch-internal", "_C", K + "return torch._C._nn.gelu(y)")
forward("torch-internal", "_VF", K + "return torch._VF.relu(y)")
forward("torch-internal", "storage", K + "return y.untyped_storage()")
forward("torch-not-allowed", "checkpoint", K + "return torch.utils.checkpoint.checkpoint(torch.relu, y)")
forward("builds-itself", "load", K + "return y", before="from torch.utils.cpp_extension import load_inline\n")
forward("builds-itself", "through torch", K + "return y", before="ext = torch.utils.cpp_extension.load(name='x', sources=[])\n")
forward("tensor-subclass", "lazy tensor", K + "return y", before="class Lazy(torch.Tensor):\n    pass\n")
forward("tensor-subclass", "dispatch", K + "return y", before="""
    class Sneaky:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args)
    """)  # fmt: skip

# the reference
forward("reference-model", "import", K + "return y", before="import model\n")
forward("reference-model", "from import", K + "return Model()(y)", before="from model import Model\n")
forward("reference-model", "relative", K + "return y", before="from . import model\n")
forward("reference-model", "in forward", K + "from model import Model as M\nreturn M()(y)")

# other kernels
for module in ("triton", "cupy", "numba", "cutlass", "tilelang", "flash_attn"):
    forward("kernel-dsl", module, K + "return y", before=f"import {module}\n")
forward("kernel-dsl", "triton.language", K + "return y", before="import triton.language as tl\n")
forward("import-not-allowed", "unknown module", K + "return y", before="import helpers\n")
forward("star-import", "torch", K + "return relu(y)", before="from torch import *\n")

# the machine
for module in ("os", "subprocess", "socket", "multiprocessing", "threading", "ctypes", "cffi", "time"):
    forward("system-access", module, K + "return y", before=f"import {module}\n")
forward("system-access", "in forward", K + "import os\nos.system('true')\nreturn y")
forward("system-access", "from import renamed", K + "return y", before="from os import system as s\n")
forward("dynamic-code", "exec", K + "exec('y = torch.relu(y)')\nreturn y")
forward("dynamic-code", "eval renamed", K + "e = eval\nreturn e('torch.relu')(y)")
forward("dynamic-code", "__import__", K + "return __import__('torch').relu(y)")
forward("dynamic-code", "importlib", K + "return y", before="import importlib\n")
forward("dynamic-code", "compile", K + "compile('1', '', 'eval')\nreturn y")
forward("dynamic-attribute", "pieces", K + "return getattr(torch, 're' + 'lu')(y)")
forward("dynamic-attribute", "join", K + "return getattr(y, ''.join(['re', 'lu']))()")
forward("dynamic-attribute", "from the arguments", K + "return getattr(torch, x)(y)")
forward("introspection", "globals", K + "return globals()['torch'].relu(y)")
forward("introspection", "sys.modules", K + "return sys.modules['torch'].relu(y)", before="import sys\n")
forward("introspection", "sys.modules by name", K + "return modules['torch'].relu(y)", before="from sys import modules\n")
forward("introspection", "frames", K + "return y", before="import sys\nf = sys._getframe\n")
forward("introspection", "gc", K + "return y", before="import gc\n")
forward("introspection", "inspect", K + "return y", before="import inspect\n")
forward("introspection", "__dict__", K + "return torch.__dict__['relu'](y)")
forward("introspection", "__globals__", K + "return self.forward.__globals__['torch'].relu(y)")
forward("introspection", "subclasses", K + "return ().__class__.__base__.__subclasses__()")
forward("introspection", "__builtins__", K + "return __builtins__['eval']('1')")
forward("introspection", "attrgetter", K + "return operator.attrgetter('relu')(torch)(y)", before="import operator\n")
forward("introspection", "methodcaller", K + "return operator.methodcaller('relu')(y)", before="import operator\n")
forward("introspection", "dict of self", K + "return self.__dict__['_modules']['fc'](y)")
forward("reads-files", "open", K + "return open('/tmp/x').read()")
forward("reads-files", "torch.load", K + "return y", init="self.t = torch.load('/tmp/x')\n")
forward("reads-files", "pathlib", K + "return y", before="from pathlib import Path\n")

# changing what is not the candidate's
forward("patches-modules", "torch", K + "return y", before="torch.relu = cuda_extension.relu\n")
forward("patches-modules", "Tensor", K + "return y", before="torch.Tensor.relu = lambda self: self\n")
forward("patches-modules", "setattr", K + "return y", before="setattr(torch, 'allclose', lambda *a: True)\n")
forward("patches-modules", "setattr in a loop", K + "return y", before="for n in ('relu', 'exp'):\n    setattr(torch, n, None)\n")
forward("patches-modules", "alias", K + "return y", before="t = torch.nn.Module\nt.forward = None\n")
forward("patches-modules", "del", K + "return y", before="del torch.relu\n")
forward("patches-modules", "layer's forward", K + "return y", init="self.fc.forward = lambda v: v\n")
forward("patches-modules", "Event", K + "return y", before="torch.cuda.Event.elapsed_time = lambda *a: 0\n")
forward("patches-modules", "the extension", K + "return y", before="cuda_extension.relu = None\n")
forward("global-state", "tf32", K + "return y", before="torch.backends.cuda.matmul.allow_tf32 = True\n")
forward("global-state", "precision", K + "return y", before="torch.set_float32_matmul_precision('high')\n")
forward("global-state", "seed", K + "return y", init="torch.manual_seed(0)\n")
forward("global-state", "seed renamed", K + "return y", before="from torch import manual_seed as s\ns(0)\n")
forward("global-state", "autocast", "with torch.autocast('cuda'):\n    return cuda_extension.relu(x)")
forward("hooks", "forward hook", K + "return y", init="self.fc.register_forward_hook(print)\n")
forward("hooks", "pre hook", K + "return y", init="self.register_forward_pre_hook(lambda *a: None)\n")
forward("hooks", "tensor hook", K + "return y", init="self.w.register_hook(print)\n")
forward("hooks", "dict of hooks", K + "return y", init="self._forward_hooks[0] = print\n")

# classes and calls that cannot be followed
forward("class-machinery", "metaclass", K + "return y", before="class M(type):\n    pass\nclass C(metaclass=M):\n    pass\n")
forward("class-machinery", "type", K + "return type('X', (), {'f': torch.relu})().f(y)")
forward("untraceable-call", "calls an input", K + "return x(y)")
forward("untraceable-call", "calls what the constructor gets", K + "return self.size(y)")
forward("untraceable-call", "method of it", K + "return self.size.relu()")

# no candidate
case("no-model", "none", "import torch\n")
case("no-model", "an instance", file() + "\nModelNew = ModelNew(3)\n")
case("no-model", "a partial", file() + "\nModelNew = functools.partial(ModelNew, 3)\n")
case("no-own-kernel", "returns an input", file("return x.view(-1)"))
case("no-own-kernel", "only in __init__", file("return x", init="cuda_extension.relu(self.w)\n"))
case("no-own-kernel", "only in a function that is not called", file("return x", methods="def run(self, v):\n    return cuda_extension.relu(v)\n"))

# files that resist
case("unreadable", "syntax", "def f(:\n")
case("unreadable", "not utf-8", b"x = '\xff'\n")
case("unreadable", "another encoding", b"# -*- coding: utf-7 -*-\nx = 1\n")
case("unreadable", "nul", b"x = 1\0\n")
case("too-large", "bytes", "x = 1\n" * 60000)
case("too-large", "nodes", "x=1;" * 21000)
case("too-deep", "brackets", "x = " + "[" * 150 + "]" * 150 + "\n")
case("too-deep", "operators", "x = " + "+".join(["1"] * 5000) + "\n")
case("too-deep", "attributes", "x = a" + ".b" * 3000 + "\n")
case("too-deep", "calls in calls", file("return f0(x)", before="".join(f"def f{i}(v):\n    return f{i + 1}(v)\n" for i in range(60))))
case("torch-compute", "many ways through", file("return f0(x, 1)", before="".join(
    f"def f{i}(*v):\n    return f{i + 1}(v, 1), f{i + 1}(1, v), f{i + 1}(v, v)\n" for i in range(30)) + "def f30(*v):\n    return torch.relu(v)\n"))

# Each line of the checker that refuses or hands on has a file that only it refuses.
forward("reads-values", "any", K + "return x if any([y]) else y")
forward("tensor-operator", "sorted", K + "return sorted([y, x])[0]")
forward("reads-values", "filter", K + "return list(filter(lambda v: v, [y]))[0]")
forward("torch-compute", "handed to a built-in", K + "object(torch.relu)\nreturn y")
forward("untraceable-call", "super outside of a class", "return f(cuda_extension.relu(x))", before="def f(v):\n    return super().g(v)\n")
forward("reads-values", "slice()", K + "return x[slice(0, y)]")
forward("reads-values", "slice", K + "return x[: y]")
forward("torch-compute", "handed to what cannot be followed", K + "self.size(torch.relu)\nreturn y")
forward("torch-compute", "handed to a refused name", K + "torch.jit.trace(lambda: torch.relu(y), ())\nreturn y")
forward("torch-compute", "handed to a layer", K + "self.fc(lambda: torch.relu(y))\nreturn y")
forward("torch-compute", "handed to a context", K + "with torch.cuda.graph(lambda: torch.relu(y)):\n    return y")
forward("torch-compute", "handed to a torch function", K + "torch.relu(lambda: torch.tanh(y))\nreturn y")
forward("torch-compute", "handed to a plain function", K + "import warnings\nwarnings.warn(lambda: torch.relu(y))\nreturn y")
forward("torch-compute", "handed to a method of a number", K + "'a'.join(torch.relu(v) for v in [y])\n''.join(map(torch.relu, [y]))\nreturn y")
forward("torch-compute", "handed to a text", K + "(3).__eq__\n'a'.format(torch.relu)\nreturn y")
forward("torch-compute", "handed to a method of an unknown value", K + "self.size.get(torch.relu)\nreturn y")
forward("torch-compute", "key of a sort", K + "v = [y, x]\nv.sort(key=torch.sum)\nreturn v[0]")
forward("torch-compute", "handed to a method of a layer", K + "self.fc.run(lambda: torch.relu(y))\nreturn y")
forward("torch-compute", "handed to a method of a tensor", K + "y.run_it(lambda: torch.relu(y))\ny.relu(lambda: torch.tanh(y))\nreturn y")
forward("torch-compute", "handed to the extension in __init__", K + "return y", init="cuda_extension.keep(self.later)\n", methods="def later(self, v):\n    return torch.relu(v)\n")
forward("tensor-method", "method of a weight handed to the extension in __init__", K + "return y", init="cuda_extension.keep(self.w.relu)\n")
forward("reads-values", "not", K + "return not y")
forward("reads-values", "or as a value", K + "z = y or x\nreturn z")
forward("tensor-operator", "in", K + "z = y in [x]\nreturn y")
forward("reads-values", "condition of a comprehension", K + "return [v for v in [x] if y]")
forward("reads-values", "and in a condition", K + "if x is not None and y:\n    return x\nreturn y")
forward("reads-values", "not in a condition", K + "if not y:\n    return x\nreturn y")
forward("reads-values", "assert", K + "assert y\nreturn y")
forward("reads-values", "while", K + "while y:\n    y = cuda_extension.relu(y)\nreturn y")
forward("reads-values", "guard", K + "match 1:\n    case 1 if y:\n        return x\nreturn y")
forward("tensor-operator", "match on a value", K + "match y:\n    case 0:\n        return x\nreturn y")
forward("tensor-method", "conjugate as an attribute", K + "return y.mH")
forward("untraceable-call", "a method that the file does not define", K + "return self.undefined(y)")
forward("class-machinery", "a metaclass alone", K + "return y", before="import abc\nclass C(metaclass=abc.ABCMeta):\n    pass\n")
forward("class-machinery", "derives from type", K + "return y", before="class C(type):\n    pass\n")
forward("class-machinery", "derives from what a function gives", K + "return y", before="def base():\n    return lambda: 1\nclass C(base()):\n    pass\n")
forward("patches-modules", "an item", K + "return y", before="math.constants['pi'] = 3\n")
