"""Honest files that look like others: (name, text). None of them may have a finding."""

from policy_harness import file

CASES = []


def case(name, text):
    CASES.append((name, text))


def forward(name, body, **more):
    case(name, file(body, **more))


K = "y = cuda_extension.relu(x)\n"

forward("plain", "return cuda_extension.relu(x)")
forward("extension renamed", "return ext.relu(x)", before="import cuda_extension as ext\n")
forward("function of the extension", "return relu(x)", before="from cuda_extension import relu\n")
forward("views", K + "return y.view(-1).reshape(2, -1).unsqueeze(0).transpose(0, 1).permute(1, 0, 2).flatten().t().mT")
forward("view functions", K + "return torch.flatten(torch.transpose(y, 0, 1))")
forward("metadata", K + "assert x.is_contiguous() and x.dtype == torch.float32 and x.device == y.device, f'{x.shape}'\nreturn y")
forward("output buffer", "out = torch.empty_like(x)\ncuda_extension.relu_into(out, x)\nreturn out")
forward("zeros for atomics", "out = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)\ncuda_extension.add_into(out, x)\nreturn out")
forward("new_empty", "out = x.new_empty(x.size(0), self.size)\ncuda_extension.f(out, x)\nreturn out")
forward("integer arithmetic on shapes", "b, n = x.shape\nblocks = (n * 4 + 255) // 256\nreturn cuda_extension.f(x, blocks, b * n, -n, n ** 2, n % 3)")
forward("arithmetic on settings", "return cuda_extension.f(x, self.size // 4, self.size * 2.0 + 1, self.n > 3)", init="self.n = self.size + 1\n")
forward("numel and stride", "return cuda_extension.f(x, x.numel() // 2, x.stride(0) * 2, x.stride()[0], len(x), x.dim() - 1)")
forward("number that forward gets", "k = int(n)\nreturn cuda_extension.f(x, k * 2 + 1)", arguments="x, n")
forward("flag that forward gets", "return cuda_extension.f(x, 1 if causal else 0)", arguments="x, causal=False")
forward("optional input", "if mask is None:\n    mask = torch.empty(0, device=x.device)\nreturn cuda_extension.f(x, mask)", arguments="x, mask=None")
forward("list of inputs", "return [cuda_extension.relu(v) for v in xs]", arguments="xs")
forward("dict of inputs", "return {name: cuda_extension.relu(v) for name, v in batch.items()}", arguments="batch")
forward("dict of inputs by name", "return cuda_extension.f(batch['a'], batch['b'].view(-1))", arguments="batch")
forward("named tuple of inputs", "return cuda_extension.f(batch.tokens, batch.mask)", arguments="batch")
forward("many inputs", "return cuda_extension.f(*xs, **kw)", arguments="*xs, **kw")
forward("layer holds parameters", "return cuda_extension.linear(x, self.fc.weight, self.fc.bias)")
forward("settings of a layer", "return cuda_extension.norm(x, self.norm.weight, self.norm.eps * 2, self.conv.stride[0] * 2, self.conv.padding)",
        init="self.norm = nn.LayerNorm(3)\nself.conv = nn.Conv2d(3, 3, 3)\n")  # fmt: skip
forward("list of layers that hold parameters", "for layer in self.layers:\n    x = cuda_extension.linear(x, layer.weight, layer.bias)\nreturn x",
        init="self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])\n")  # fmt: skip
forward("sequential that holds parameters", "return cuda_extension.mlp(x, self.net[0].weight, self.net[2].weight)",
        init="self.net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))\n")  # fmt: skip
forward("sequential of own blocks", "return self.net(x)", before="""
    class Block(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.fc = nn.Linear(n, n)

        def forward(self, v):
            return cuda_extension.linear(v, self.fc.weight, self.fc.bias)
    """, init="self.net = nn.Sequential(Block(3), Block(3))\n")  # fmt: skip
forward("list of own blocks", "for block in self.blocks:\n    x = block(x)\nreturn x", before="""
    class Block(nn.Module):
        def forward(self, v):
            return cuda_extension.relu(v)
    """, init="self.blocks = nn.ModuleList([Block() for _ in range(2)])\n")  # fmt: skip
forward("nested settings", "return cuda_extension.attention(x, self.attn.in_proj_weight, self.attn.out_proj.weight, self.attn.num_heads)",
        init="self.attn = nn.MultiheadAttention(8, 2)\n")  # fmt: skip
forward("gru", "return cuda_extension.gru(x, self.gru.weight_ih_l0, self.gru.bias_hh_l0)", init="self.gru = nn.GRU(3, 3)\n")
forward("bias may be missing", "bias = self.fc.bias if self.fc.bias is not None else torch.empty(0)\nreturn cuda_extension.f(x, bias)")
forward("computed constants", "return cuda_extension.f(x, self.table)", init="""
    position = torch.arange(16).unsqueeze(1)
    scale = torch.exp(torch.arange(0, 8, 2) * (-math.log(10000.0) / 8))
    self.register_buffer("table", torch.sin(position * scale))
    self.register_buffer("mask", torch.tril(torch.ones(4, 4)) == 0)
    """)  # fmt: skip
forward("initialised weights", K + "return y", init="""
    nn.init.xavier_uniform_(self.w.view(1, -1))
    self.gain = nn.Parameter(torch.ones(3) * 0.5)
    with torch.no_grad():
        self.fc.weight.mul_(0.5)
    self.rates = [v.item() for v in torch.linspace(0, 0.1, 3)]
    """)  # fmt: skip
forward("weights repacked when they change", """
    version = self.fc.weight._version
    if self.packed is None or self.seen != version:
        self.packed = torch.cat([self.fc.weight, self.fc.weight.t()]).contiguous()
        self.buffer.copy_(self.fc.weight.t())
        self.seen = version
    return cuda_extension.f(x, self.packed, self.buffer)
    """, init="self.packed = None\nself.seen = -1\nself.buffer = torch.empty(size, size)\n")  # fmt: skip
forward("weights in half", "w = self.fc.weight.half().contiguous()\nreturn cuda_extension.f(x, w, self.w.to(torch.bfloat16))")
forward("persistent output", """
    key = (x.shape, x.dtype, x.device)
    if key not in self.buffers:
        self.buffers[key] = torch.empty_like(x)
    out = self.buffers[key]
    cuda_extension.f(out, x)
    return out
    """, init="self.buffers = {}\n")  # fmt: skip
forward("workspace by shape", "w = workspace(x.shape[0], x.device)\nreturn cuda_extension.f(x, w)", before="""
    @functools.lru_cache(maxsize=None)
    def workspace(n, device):
        return torch.empty(n * 4, dtype=torch.uint8, device=device)
    """)  # fmt: skip
forward("graph per pointer", """
    key = x.data_ptr()
    if key not in self.graphs:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = cuda_extension.relu(x)
        self.graphs[key] = (graph, out)
    graph, out = self.graphs[key]
    graph.replay()
    return out
    """, init="self.graphs = {}\n")  # fmt: skip
forward("streams", """
    stream = torch.cuda.current_stream().cuda_stream
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = cuda_extension.f(x, stream)
    torch.cuda.current_stream().wait_stream(side)
    return y
    """)  # fmt: skip
forward("several outputs", "a, b = cuda_extension.both(x)\nreturn a, b.view(-1)")
forward("named tuple output", "return Out(*cuda_extension.both(x))", before="""
    from typing import NamedTuple

    class Out(NamedTuple):
        values: torch.Tensor
        count: torch.Tensor
    """)  # fmt: skip
forward("collections.namedtuple output", "return Out(cuda_extension.relu(x), x)", before="from collections import namedtuple\nOut = namedtuple('Out', 'a b')\n")
forward("dataclass output", "return Out(values=cuda_extension.relu(x))", before="""
    from dataclasses import dataclass, field
    from typing import Optional

    @dataclass
    class Out:
        values: torch.Tensor
        extra: Optional[torch.Tensor] = None
        names: list = field(default_factory=list)
    """)  # fmt: skip
forward("helpers", "return run(self, x, ceil_div(x.shape[1], 256))", before="""
    def ceil_div(a: int, b: int) -> int:
        return -(-a // b)

    def run(model, v, blocks):
        return cuda_extension.f(v, model.w, blocks)
    """)  # fmt: skip
forward("static method, property, class constant", "return cuda_extension.f(x, self.pad(x.shape[0]), self.half, self.TILE * 2)", methods="""
    TILE = 64

    @staticmethod
    def pad(n):
        return (n + 63) // 64 * 64

    @property
    def half(self):
        return self.size // 2
    """)  # fmt: skip
forward("autograd function", "return Relu.apply(x)", before="""
    class Relu(torch.autograd.Function):
        @staticmethod
        def forward(ctx, v):
            ctx.save_for_backward(v)
            return cuda_extension.relu(v)

        @staticmethod
        def backward(ctx, grad):
            return torch.relu(grad)
    """)  # fmt: skip
forward("no_grad", "with torch.no_grad():\n    return cuda_extension.relu(x)")
forward("no_grad as a decorator", "return self.run(x)", methods="@torch.no_grad()\ndef run(self, v):\n    return cuda_extension.relu(v)\n")
forward("inference_mode without brackets", "return self.run(x)", methods="@torch.inference_mode\ndef run(self, v):\n    return cuda_extension.relu(v)\n")
forward("product of a shape", "return cuda_extension.f(x, functools.reduce(operator.mul, x.shape, 1), math.prod(x.shape[1:]), sum(x.shape))", before="import operator\n")
forward("math on numbers", "return cuda_extension.f(x, 1.0 / math.sqrt(x.shape[-1]), max(x.shape), min(3, self.size), abs(-2), round(2.5))")
forward("partial of an own function", "return self.f(x)", init="self.f = functools.partial(run, n=3)\n", before="def run(v, n):\n    return cuda_extension.f(v, n * 2)\n")
forward("kernels in a table", "return TABLE[x.dtype](x)", before="TABLE = {torch.float32: cuda_extension.f32, torch.float16: cuda_extension.f16}\n")
forward("getattr with a written name", "return cuda_extension.linear(x, getattr(self.fc, 'weight'), getattr(self, 'missing', None))")
forward("getattr in a loop over written names", "ws = [getattr(self, name).weight for name in ('q', 'k')]\nreturn cuda_extension.f(x, ws)",
        init="for name in ('q', 'k'):\n    setattr(self, name, nn.Linear(3, 3))\n")  # fmt: skip
forward("try around a kernel", "try:\n    return cuda_extension.relu(x)\nexcept RuntimeError as error:\n    raise RuntimeError(f'relu of {tuple(x.shape)}') from error")
forward("words in comments and names", '# torch.relu(x), exec, open, two-pass, try, pass\ntwo_pass = "torch.matmul(x, w)"\nopened = 1\nreturn cuda_extension.two_pass(x, opened)')
forward("a function that nobody calls", "return cuda_extension.relu(x)", before="def reference(x):\n    return torch.relu(x) @ x\n")
forward("unused imports", K + "return y", before="from torch.nn.functional import relu\nfrom typing import Tuple, List, Dict\nimport numpy as np\nfrom torch import Tensor, nn\n")
case("run as a script", file() + """
if __name__ == "__main__":
    import time
    from model import Model, get_inputs
    print(torch.allclose(Model(3)(*get_inputs()), ModelNew(3)(*get_inputs())), time.time())
""")  # fmt: skip
case("future annotations", "from __future__ import annotations\n" + file("out: torch.Tensor | None = None\nreturn cuda_extension.f(x, out)"))
forward("annotations", "return cuda_extension.f(x)", methods="def other(self, v: 'torch.Tensor | None', n: int = 3) -> tuple[torch.Tensor, ...]:\n    return v\n")
forward("slices and stores", "out = torch.empty_like(x)\nout[:, : self.size // 2] = cuda_extension.f(x)[:, 1:]\nout[0, ...].copy_(x[0])\nreturn out[None, -1]")
forward("contiguous, clone, device", K + "return y.contiguous().clone().to(x.device), x.to('cuda'), x.to(memory_format=torch.channels_last)")
forward("pointers", "ptrs = torch.tensor([v.data_ptr() for v in (x, self.w)], dtype=torch.int64, device=x.device)\nreturn cuda_extension.f(ptrs)")
forward("object of the extension", "return self.plan.run(x)", init="self.plan = cuda_extension.Plan(size)\n")
forward("number of the extension", "n = int(cuda_extension.workspace_bytes(x.shape[0])) + 16\nreturn cuda_extension.f(x, torch.empty(n, dtype=torch.uint8))")
forward("number of the extension as it is", "return cuda_extension.f(x, torch.empty(cuda_extension.workspace_bytes(x.shape[0]), dtype=torch.uint8))")
forward("while and break", "n = x.shape[0]\nsteps = 0\nwhile n > 1:\n    n = (n + 1) // 2\n    steps += 1\n    if steps > 20:\n        break\nreturn cuda_extension.f(x, steps)")
forward("enumerate and zip", "for i, (w, v) in enumerate(zip([self.w], [x])):\n    x = cuda_extension.f(v, w, i * 2)\nreturn x")
forward("identity, flatten and dropout kept", "return self.flatten(self.identity(cuda_extension.f(x, self.drop.p)))",
        init="self.flatten = nn.Flatten()\nself.identity = nn.Identity()\nself.drop = nn.Dropout(0.5)\n")  # fmt: skip
forward("inherits the constructor", "return cuda_extension.f(x, self.w, self.k * 2)", before="""
    class Base(nn.Module):
        def __init__(self):
            super().__init__()
            self.k = 3
    """)  # fmt: skip
forward("enum and settings class", "return cuda_extension.f(x, Mode.FAST.value, self.c.tile * 2)", before="""
    import enum
    from dataclasses import dataclass

    class Mode(enum.Enum):
        FAST = 1

    @dataclass(frozen=True)
    class Settings:
        tile: int = 64
    """, init="self.c = Settings(tile=32)\n")  # fmt: skip
forward("caller of given function", "return self.each(cuda_extension.relu, [x, x])", methods="def each(self, f, xs):\n    return [f(v) for v in xs]\n")

# What honest candidates for ordinary models do.
forward("shape in loop", "h = []\nfor i in range(x.shape[0]):\n    h.append(cuda_extension.f(x[i], i + 1))\nreturn h")
forward("lazy handle", "if self.handle is None:\n    self.handle = cuda_extension.create()\nreturn cuda_extension.f(x, self.handle)", init="self.handle = None\n")
forward("tuple returns with ints", "out, n = self.prep(x)\nreturn cuda_extension.f(out, n * 2)", methods="def prep(self, v):\n    return torch.empty_like(v), v.shape[0] + 1\n")
forward("strings", "name = 'f_' + str(x.dtype).split('.')[-1]\nreturn KERNELS[name](x)", before="KERNELS = {'f_float32': cuda_extension.f}\n")
forward("dtype compare", "if x.dtype in (torch.float16, torch.bfloat16):\n    return cuda_extension.h(x)\nreturn cuda_extension.f(x)")
forward("device index", "idx = x.device.index or 0\nif x.device.type == 'cuda':\n    pass\nreturn cuda_extension.f(x, idx + 1)")
forward("contiguity", "x = x if x.is_contiguous() else x.contiguous()\nreturn cuda_extension.f(x)")
forward("conv out size", "oh = (x.size(2) + 2 * self.conv.padding[0] - self.conv.dilation[0] * (self.conv.kernel_size[0] - 1) - 1) // self.conv.stride[0] + 1\nreturn cuda_extension.f(x, oh)", init="self.conv = nn.Conv2d(3, 3, 3)\n")
forward("init arithmetic", "return cuda_extension.f(x, self.head_dim, self.scale)", init="self.head_dim = size // 4\nself.scale = self.head_dim ** -0.5\nassert size % 4 == 0\n")
forward("extra repr", "return cuda_extension.f(x)", methods="def extra_repr(self):\n    return f'size={self.size}'\n")
forward("load hooks override", "return cuda_extension.f(x)", methods="def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs):\n    super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)\n    self.packed = None\n")
forward("train override", "return cuda_extension.f(x)", methods="def train(self, mode=True):\n    self.packed = None\n    return super().train(mode)\n")
forward("apply override", "return cuda_extension.f(x)", methods="def _apply(self, fn, recurse=True):\n    self.packed = None\n    return super()._apply(fn, recurse)\n")
forward("buffers at forward", "if self.buf.shape != x.shape:\n    self.buf = torch.empty(x.shape, device=x.device, dtype=x.dtype)\ncuda_extension.f(self.buf, x)\nreturn self.buf", init="self.register_buffer('buf', torch.empty(0), persistent=False)\n")
forward("versions of many", "v = tuple(p._version for p in self.parameters())\nif v != self.v:\n    self.flat = torch.cat([p.detach().reshape(-1) for p in self.parameters()])\n    self.v = v\nreturn cuda_extension.f(x, self.flat)", init="self.v = None\nself.flat = None\n")
forward("pack by own kernel", "if self.p is None:\n    self.p = cuda_extension.pack(self.fc.weight)\nreturn cuda_extension.f(x, self.p.view(-1))", init="self.p = None\n")
forward("sum of lists of ints", "sizes = [v.shape[0] for v in xs]\ntotal = sum(sizes)\nreturn cuda_extension.f(xs, total + 1, max(sizes))", arguments="xs")
forward("hidden state none", "if h is None:\n    h = x.new_zeros(1, x.size(1), self.size)\nreturn cuda_extension.gru(x, h)", arguments="x, h=None")
forward("dict out", "return {'loss': cuda_extension.loss(x), 'logits': x.view(-1)}")
forward("ordered dict", "return OrderedDict(a=cuda_extension.f(x))", before="from collections import OrderedDict\n")
forward("list ops", "outs = [cuda_extension.f(x)] + [cuda_extension.g(x)]\nouts += [x]\nreturn tuple(outs)")
forward("tuple mult", "shape = (1,) * 2 + tuple(x.shape[2:])\nreturn cuda_extension.f(x, torch.empty(shape))")
forward("size index", "n = x.size()[-1] * x.size(0)\nreturn cuda_extension.f(x, n)")
forward("unflatten", "return cuda_extension.f(x.unflatten(1, (self.size, -1)).transpose(1, 2))")
forward("split views", "q, k, v = cuda_extension.qkv(x).chunk(3, dim=-1)\nreturn cuda_extension.attn(q, k, v)")
forward("expand", "b = self.fc.bias.expand(x.shape[0], -1)\nreturn cuda_extension.f(x, b)")
forward("stream handle", "return cuda_extension.f(x, torch.cuda.current_stream(x.device).cuda_stream)")
forward("device props", "sm = torch.cuda.get_device_properties(x.device).multi_processor_count\nreturn cuda_extension.f(x, sm * 2)")
forward("is cuda branch", "f = cuda_extension.fc if x.is_cuda else cuda_extension.fh\nreturn f(x)")
forward("module constants tensors", "return cuda_extension.f(x, TABLE)", before="TABLE = torch.arange(10).float() / 10\n")
forward("numpy init", "return cuda_extension.f(x, self.t)", before="import numpy as np\n", init="self.t = torch.from_numpy(np.sqrt(np.arange(10)))\n")
forward("nn.init loop", "return cuda_extension.f(x, self.fc.weight)", init="for m in self.modules():\n    if isinstance(m, nn.Linear):\n        nn.init.kaiming_normal_(m.weight)\n        nn.init.zeros_(m.bias)\n")
forward("apply init", "return cuda_extension.f(x, self.fc.weight)", init="self.apply(self._init)\n", methods="def _init(self, m):\n    if isinstance(m, nn.Linear):\n        m.weight.data.normal_(0, 0.02)\n")
forward("reset params", "return cuda_extension.f(x, self.w)", init="self.reset_parameters()\n", methods="def reset_parameters(self):\n    bound = 1 / math.sqrt(self.w.size(0))\n    self.w.data.uniform_(-bound, bound)\n")
forward("parameter list", "for p in self.ps:\n    x = cuda_extension.f(x, p)\nreturn x", init="self.ps = nn.ParameterList([nn.Parameter(torch.zeros(3)) for _ in range(3)])\n")
forward("seq params by index loop", "for i in range(0, len(self.net), 2):\n    x = cuda_extension.f(x, self.net[i].weight)\nreturn x", init="layers = []\nfor i in range(3):\n    layers.append(nn.Linear(3, 3))\n    layers += [nn.ReLU()]\nself.net = nn.Sequential(*layers)\n")
forward("seq isinstance", "for layer in self.net:\n    if isinstance(layer, nn.Linear):\n        x = cuda_extension.f(x, layer.weight)\nreturn x", init="self.net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())\n")
forward("bottleneck blocks", "return self.l1(x)", before="class Blk(nn.Module):\n    expansion = 4\n    def __init__(self, i, o, stride=1, down=None):\n        super(Blk, self).__init__()\n        self.conv = nn.Conv2d(i, o, 3, stride)\n        self.bn = nn.BatchNorm2d(o)\n        self.down = down\n    def forward(self, v):\n        y = cuda_extension.conv(v, self.conv.weight, self.bn.weight, self.bn.bias, self.bn.running_mean, self.bn.running_var, self.bn.eps, self.conv.stride[0])\n        if self.down is not None:\n            v = self.down(v)\n        return cuda_extension.addrelu(y, v)\nclass Down(nn.Sequential):\n    def forward(self, v):\n        return cuda_extension.conv1(v, self[0].weight, self[1].weight)\n", init="self.l1 = self._make(3)\n", methods="def _make(self, n):\n    layers = [Blk(3, 3, down=Down(nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)))]\n    for _ in range(1, n):\n        layers.append(Blk(3 * Blk.expansion, 3))\n    return nn.Sequential(*layers)\n")
forward("keyword ext", "return cuda_extension.f(x, alpha=1.0 / self.size, out=None)")
forward("int input annotated, passed", "return cuda_extension.f(x, n, float(alpha) * 2)", arguments="x, n: int, alpha: float")
forward("range input", "for i in range(n):\n    x = cuda_extension.f(x, i * 2)\nreturn x", arguments="x, n")
forward("assert input", "assert n > 0\nreturn cuda_extension.f(x, n)", arguments="x, n: int")
forward("eq str input", "if mode == 'a':\n    return cuda_extension.f(x)\nreturn cuda_extension.g(x)", arguments="x, mode='a'")
forward("mem format", "return cuda_extension.f(x.contiguous(memory_format=torch.channels_last))")
forward("empty with kw", "out = torch.empty((x.shape[0], *x.shape[2:]), dtype=torch.float32, device=x.device)\ncuda_extension.f(out, x)\nreturn out")
forward("scalar dtype", "return cuda_extension.f(x, torch.finfo(x.dtype).eps, torch.finfo(torch.float32).max * 2)")
forward("lambda ceil", "c = lambda a, b: (a + b - 1) // b\nreturn cuda_extension.f(x, c(x.numel(), 256))")
forward("global cache", "return cuda_extension.f(x, get(x.device))", before="_CACHE = {}\ndef get(device):\n    if device not in _CACHE:\n        _CACHE[device] = torch.zeros(1, device=device, dtype=torch.int32)\n    return _CACHE[device]\n")
forward("isinstance list", "if isinstance(x, (list, tuple)):\n    x = x[0]\nreturn cuda_extension.f(x)")
forward("detach weight float", "w = self.fc.weight.detach().to(torch.float32).t().contiguous()\nreturn cuda_extension.f(x, w)")
forward("no_grad init", "return cuda_extension.f(x, self.w)", init="with torch.no_grad():\n    self.w.fill_(1.0)\n    self.w += 1\n    self.w[0] = 2\n")
forward("super old style", "return cuda_extension.f(x)", methods="def __repr__(self):\n    return super(ModelNew, self).__repr__()\n")
forward("half weights cached by dtype", "w = self._w(x.dtype)\nreturn cuda_extension.f(x, w)", methods="def _w(self, dtype):\n    return self.fc.weight.to(dtype)\n")
forward("unused dropout", "return cuda_extension.f(x, self.p if self.training else 0.0)", init="self.p = 0.1 * 2\n")
forward("type hints", "y: torch.Tensor = cuda_extension.f(x)\nn: int = 3\nreturn y, n + 1")
forward("weight folded at init", "return cuda_extension.f(x, self.t)", init="self.t = nn.Parameter(self.fc.weight.detach() * 2 + 1)\n")
forward("return None branch", "if x.numel() == 0:\n    return torch.empty_like(x)\nreturn cuda_extension.f(x)")
