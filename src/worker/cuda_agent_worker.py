"""A worker process: answers the supervisor's requests about one model until told to end.

`main` reads requests (JSON objects with "op") and answers each with {"ok": true, ...} or {"ok": false, "error": ...}.
The reference worker runs the task's Model, a candidate worker one ModelNew; which requests a worker knows depends on
its role. See docs/architecture.md for the life of one timed call.
"""

import copy
import gc
import importlib.util
import inspect
import json
import os
import random
import sys
import threading
import time
import traceback

import torch  # before _cuda_agent, which needs torch's libraries in the process
from torch.utils._pytree import tree_map

import _cuda_agent
import cuda_agent_inductor
from cuda_agent_fingerprint import fingerprint
from cuda_agent_precision import pin_precision, read_precision
from cuda_agent_tree import Decoder, Encoder, Unsupported

TRACEBACK_BYTES = 16384

# Before a timed call on the CPU. A memory-bound model of 2 ms still gains 15 % from the fifth call on, in a process that
# was stopped for 100 ms.
WARM_SECONDS = 0.01
MOST_WARM_CALLS = 8


# Of a model whose kernels are traced: whatever is made on the first calls is there.
TRACE_WARM_CALLS = 2


class TaskError(Exception):
    """Something about the model under test that its author can mend; the message says it whole."""

    def __init__(self, kind, message, hint=""):
        super().__init__(message)
        self.kind = kind
        self.hint = hint


def seed_everything(seed):
    """One seed for torch, random and numpy, the same in every worker."""
    torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


def load_module(name, path):
    """Runs a Python file as module `name`."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def describe_exception(error, own_files):
    """What a person needs of an exception: type, message, the innermost line of the judged files, the traceback."""
    file, line = "", 0
    shown = []
    for frame in traceback.extract_tb(error.__traceback__):
        mine = any(frame.filename == f or os.path.basename(frame.filename) == os.path.basename(f) for f in own_files)
        if mine:
            file, line = os.path.basename(frame.filename), frame.lineno
        if shown or mine:
            shown.append(frame)
    if isinstance(error, SyntaxError) and error.filename:
        file, line = os.path.basename(error.filename), error.lineno or 0
    text = "".join(traceback.format_list(shown) + traceback.format_exception_only(type(error), error))
    return {
        "kind": getattr(error, "kind", "exception") if isinstance(error, TaskError) else "exception",
        "type": type(error).__name__,
        "message": str(error)[:4096],
        "hint": getattr(error, "hint", "") if isinstance(error, TaskError) else "",
        "file": file,
        "line": line,
        "traceback": text[-TRACEBACK_BYTES:],
    }


def signature_of(function):
    """The signature as text, for messages; empty when there is none."""
    try:
        return str(inspect.signature(function))
    except (TypeError, ValueError):
        return ""


class Base:
    """What both roles can do: arenas, bound inputs, timed calls, the null arm."""

    def __init__(self, worker, config):
        self.worker = worker
        self.device = torch.device(config["device"])
        self.models = {"null": None}
        self.slots = {}
        self.own_files = []

    def op_device(self, _request, _fds):
        """Starts CUDA: what all of a process's kernels wait for must not happen while another one's are timed."""
        torch.ones(1 << 16, device=self.device).add_(1)
        return {}

    def op_map(self, request, fds):
        self.worker.map(request["arena"], fds[0], request["bytes"], self.device.type == "cuda")
        return {}

    def op_control(self, _request, fds):
        """Takes the page by which the supervisor starts and ends calls on a GPU."""
        self.worker.control(fds[0])
        return {}

    def op_stream(self, request, _fds):
        """Timed calls are made on another stream from now on. With `settle` it stays so: what is cached for others is given
        back, once, since the driver wipes freed memory in the background, which slows whatever is timed meanwhile."""
        self.worker.use_stream(request["number"])
        if request["settle"]:
            torch.cuda.empty_cache()
        return {}

    def op_unmap(self, request, _fds):
        self.slots = {k: v for k, v in self.slots.items() if v["arena"] != request["arena"]}
        self.worker.unmap(request["arena"])
        return {}

    def op_bind(self, request, _fds):
        """Remembers the arguments of a slot; tensors are made anew for every call."""
        self.slots[request["slot"]] = request
        return {}

    def op_null(self, request, _fds):
        """Prepares what the null arm stores: tensors of the shapes given."""
        tensors = [torch.zeros(t["shape"], dtype=getattr(torch, t["dtype"]), device=self.device) for t in request["tensors"]]
        self.worker.set_null_output(tuple(tensors))
        return {}

    def op_call(self, request, _fds):
        """One timed call of an arm on K slots; with `warm`, after some that are not timed, on what the slots still hold."""
        model = self.models[request["arm"]]
        room = (request["arena"], request["at"], request["room"])
        if request["warm"]:
            self._warm(model, request["slots"], room)
        arguments = [self._arguments(slot) for slot in request["slots"]]
        if request.get("rng") is not None:
            seed_everything(request["rng"])
        with torch.no_grad():
            text = self.worker.call(model, arguments, *room, request["launches"], request["written"], request["stored"])
        return {"result": json.loads(text)}

    def _warm(self, model, slots, room):
        """A process that was stopped for long is slow for more than one call: the same arm, until it is not."""
        end = time.perf_counter() + WARM_SECONDS
        with torch.no_grad():
            for _ in range(MOST_WARM_CALLS):
                self.worker.warm(model, [self._arguments(slot) for slot in slots], *room)
                if time.perf_counter() > end:
                    break

    def _arguments(self, slot):
        bound = self.slots[slot]
        decoder = Decoder(self.worker, _cuda_agent.tensor_over, self.device, bound["arena"], bound["at"], bound["storages"])
        return tuple(decoder.decode(tree) for tree in bound["trees"])

    def op_precision(self, _request, _fds):
        return {"precision": read_precision()}

    def op_state(self, request, _fds):
        """Copies the model's state dict into an arena, in the order that `load` gave."""
        encoder = Encoder()
        state = self.models[request["arm"]].state_dict()
        for name in request["names"]:
            encoder.encode(state[name].detach(), name)
        encoder.store(self.worker, request["arena"], request["at"])
        return {}


class Exact:
    """A model in float64 that takes and gives tensors of single precision."""

    def __init__(self, model):
        self.model = copy.deepcopy(model).double()

    def __call__(self, *arguments):
        result = self.model(*tree_map(self._doubled, arguments))
        return tree_map(lambda v: v.float() if isinstance(v, torch.Tensor) and v.dtype == torch.float64 else v, result)

    @staticmethod
    def _doubled(value):
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


class Reference(Base):
    """Runs the task's own Model, eager and compiled; draws inputs; never sees candidate code."""

    def __init__(self, worker, config):
        super().__init__(worker, config)
        self.importing = None
        if config["compiler"]:  # nearly two seconds, in which CUDA can start
            self.importing = threading.Thread(target=cuda_agent_inductor.import_compiler)
            self.importing.start()

    def op_load(self, request, _fds):
        if self.importing is not None:
            self.importing.join()
        path = request["path"]
        self.own_files = [path]
        module = load_module("model", path)
        for name in ("Model", "get_inputs"):
            if not hasattr(module, name):
                raise TaskError("missing", f"model.py does not define {name}", f"a task defines Model, get_inputs and get_init_inputs")
        self.get_inputs = module.get_inputs
        seed_everything(request["seed"])
        init = module.get_init_inputs() if hasattr(module, "get_init_inputs") else []
        self.init = list(init) if isinstance(init, (list, tuple)) else [init]
        self.init_encoder = Encoder()
        trees = [self.init_encoder.encode(v, f"get_init_inputs()[{i}]") for i, v in enumerate(self.init)]
        places, size = self.init_encoder.layout()
        seed_everything(request["seed"])
        with torch.device(self.device):
            model = module.Model(*self.init)
        model = model.to(self.device)
        if request["eval"]:
            model = model.eval()
        self.models["eager"] = model
        self.as_constructed = fingerprint(model)
        state = [(n, v) for n, v in model.state_dict().items() if isinstance(v, torch.Tensor)]
        return {
            "init": {"trees": trees, "storages": places, "bytes": size},
            "state": self._state_spec(state),
            "signature": signature_of(module.Model.__init__),
        }

    @staticmethod
    def _state_spec(state):
        encoder = Encoder()
        trees = [encoder.encode(v.detach(), n) for n, v in state]
        places, size = encoder.layout()
        return {"names": [n for n, _ in state], "trees": trees, "storages": places, "bytes": size}

    def op_init(self, request, _fds):
        self.init_encoder.store(self.worker, request["arena"], request["at"])
        return {}

    def op_draw(self, request, _fds):
        """Draws inputs under a seed. They are stored by `keep`, once the supervisor has room for them."""
        seed_everything(request["seed"])
        with torch.device(self.device):
            inputs = self.get_inputs()
        inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        inputs = [self._to_device(v) for v in inputs]
        if request["other"]:
            self._make_other(inputs, request["outlier"])
        self.drawn = Encoder()
        trees = [self.drawn.encode(v, f"get_inputs()[{i}]") for i, v in enumerate(inputs)]
        places, size = self.drawn.layout()
        stored = request["arena"] is not None and size <= request["room"]
        if stored:
            self.drawn.store(self.worker, request["arena"], request["at"])
            self.drawn = None
            if self.device.type == "cuda":
                torch.cuda.reset_peak_memory_stats()  # what the model takes is counted from here on
        return {"trees": trees, "storages": places, "bytes": size, "stored": stored}

    def _to_device(self, value):
        if isinstance(value, torch.Tensor):
            return value.to(self.device)
        if isinstance(value, (list, tuple)) and not hasattr(type(value), "_fields"):
            return type(value)(self._to_device(v) for v in value)
        if isinstance(value, dict):
            return {k: self._to_device(v) for k, v in value.items()}
        return value

    def _make_other(self, value, outlier):
        """Gives floating-point tensors other signs, and each one value of `outlier` times its RMS, in place."""
        if isinstance(value, torch.Tensor):
            if value.is_floating_point() and value.numel() > 0:
                value = value.detach()
                rms = torch.linalg.vector_norm(value) / value.numel() ** 0.5
                value.mul_(torch.empty_like(value).bernoulli_(0.5).mul_(2).sub_(1))
                if outlier:
                    value[tuple(random.randrange(size) for size in value.shape)] = outlier * rms
        elif isinstance(value, (list, tuple)):
            for one in value:
                self._make_other(one, outlier)
        elif isinstance(value, dict):
            for one in value.values():
                self._make_other(one, outlier)

    def op_exact(self, _request, _fds):
        """Makes the arm that computes in float64."""
        if "exact" not in self.models:
            self.models["exact"] = Exact(self.models["eager"])
        return {}

    def op_memory(self, _request, _fds):
        """The most bytes of the GPU that tensors of this process took since the last drawing."""
        return {"most": torch.cuda.max_memory_allocated()}

    def op_idle(self, _request, _fds):
        """Gives back what is kept for later calls. Returns the bytes of the GPU that tensors still take, and whether the model
        is still as it was constructed."""
        self.models.pop("exact", None)
        self.drawn = None
        gc.collect()
        held = 0
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
            held = torch.cuda.memory_reserved()
        return {"held": held, "as_constructed": fingerprint(self.models["eager"]) == self.as_constructed}

    def op_keep(self, request, _fds):
        self.drawn.store(self.worker, request["arena"], request["at"])
        self.drawn = None
        return {}

    def op_compile(self, request, _fds):
        """Makes the compiled arm. The compiler itself runs at the arm's first call."""
        import torch._dynamo

        cuda_agent_inductor.remember_vector_instructions()
        torch._dynamo.config.suppress_errors = False
        mode = request["mode"]
        self.models["compiled"] = torch.compile(self.models["eager"], mode=None if mode == "default" else mode)
        return {}

    def op_exercise(self, _request, _fds):
        """Before there is a task: compiles something, so that the task's own finds everything imported and started."""
        cuda_agent_inductor.exercise(self.device.type)
        return {}

    def op_recompiles(self, _request, _fds):
        """How many graphs the compiled arm has made so far: it grows when a baseline is compiled anew."""
        from torch._dynamo.utils import counters

        return {"graphs": int(counters["stats"].get("unique_graphs", 0))}


class Candidate(Base):
    """Runs one ModelNew, then dies. Sees neither model.py nor an expected output."""

    def op_load(self, request, _fds):
        folder = request["folder"]
        path = os.path.join(folder, "model_new.py")
        self.own_files = [path]
        sys.path.insert(0, folder)
        decoder = Decoder(self.worker, _cuda_agent.tensor_over, self.device, request["arena"], request["at"], request["init"]["storages"])
        init = [decoder.decode(tree) for tree in request["init"]["trees"]]
        module = load_module("model_new", path)
        if not hasattr(module, "ModelNew"):
            raise TaskError("missing", "model_new.py defines no class ModelNew", "define `class ModelNew(nn.Module)` with the constructor and forward of Model")
        seed_everything(request["seed"])
        try:
            with torch.device(self.device):
                model = module.ModelNew(*init)
        except TypeError as error:
            raise self._constructor_error(error, module.ModelNew, request["signature"]) from error
        if not isinstance(model, torch.nn.Module):
            raise TaskError("missing", "ModelNew is not a torch.nn.Module", "derive it from torch.nn.Module")
        model = model.to(self.device)
        if request["eval"]:
            model = model.eval()
        self.models["candidate"] = model
        return {}

    @staticmethod
    def _constructor_error(error, made, signature):
        own = signature_of(made.__init__)
        inside = error.__traceback__ is not None and error.__traceback__.tb_next is not None
        if inside:
            return error
        return TaskError("constructor", f"ModelNew.__init__{own} cannot be called like Model.__init__{signature}: {error}", "give ModelNew the parameters of Model, in the same order")

    def op_witness(self, _request, _fds):
        """Which operators ModelNew has called so far."""
        return _cuda_agent.witnessed()

    def op_trace(self, request, fds):
        """In a worker that is never timed: takes memory, starts the tracer, seals, loads ModelNew and calls it while its
        kernels are traced. torch.erfinv is the sentinel: where it is not seen, nothing can be traced here."""
        from cuda_agent_trace import trace_kernels

        self.op_device(request, ())
        for arena, fd in zip(request["arenas"], fds):
            self.worker.map(arena["number"], fd, arena["bytes"], True)
        trace_kernels(lambda: torch.ones(1, device=self.device).add_(1))  # what is started late must not be started sealed
        sealed = self.op_seal(request["seal"], ())
        self.op_load(request["load"], ())
        if request["weights"] is not None:
            self.op_weights(request["weights"], ())
        self.op_bind(request["bind"], ())
        model, slot = self.models["candidate"], request["bind"]["slot"]
        half = torch.full((1,), 0.5, device=self.device)
        with torch.no_grad():
            for _ in range(TRACE_WARM_CALLS):
                model(*self._arguments(slot))
            sentinel = trace_kernels(lambda: torch.erfinv(half))
            kernels = trace_kernels(lambda: model(*self._arguments(slot)))
        return {"sealed": sealed["filter"], "sentinel": any("erfinv" in one["name"] for one in sentinel), "kernels": kernels}

    def op_seal(self, request, _fds):
        """Gives up what an honest candidate does not need, for good; says what holds."""
        return _cuda_agent.seal(bytes.fromhex(request["filter"]), request["devices"])

    def op_weights(self, request, _fds):
        """Copies the reference's parameters and buffers into ModelNew, by name, with copy_ (so that _version moves)."""
        model = self.models["candidate"]
        spec = request["state"]
        decoder = Decoder(self.worker, _cuda_agent.tensor_over, self.device, request["arena"], request["at"], spec["storages"])
        given = dict(zip(spec["names"], spec["trees"]))
        own = {n: v for n, v in model.state_dict().items() if isinstance(v, torch.Tensor)}
        missing = [n for n in given if n not in own]
        extra = [n for n in own if n not in given]
        shape = [
            f"{n}: {list(own[n].shape)} {str(own[n].dtype).removeprefix('torch.')} instead of {given[n]['shape']} {given[n]['dtype']}"
            for n in given
            if n in own and (list(own[n].shape) != given[n]["shape"] or str(own[n].dtype) != "torch." + given[n]["dtype"])
        ]
        if missing or extra or shape:
            parts = []
            for text, names in (("missing", missing), ("not in Model", extra), ("of another shape or dtype", shape)):
                if names:
                    parts.append(f"{text}: " + ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else ""))
            raise TaskError("state", "ModelNew's parameters and buffers differ from Model's: " + "; ".join(parts), "keep the names, shapes and dtypes of Model's state_dict()")
        with torch.no_grad():
            for name, tree in given.items():
                own[name].copy_(decoder.decode(tree))
        return {}


def answer(handler, worker):
    """One request. False when the supervisor said to end."""
    text, fds = worker.receive()
    request = json.loads(text)
    if request["op"] == "end":
        return False
    try:
        reply = getattr(handler, "op_" + request["op"])(request, fds)
        if handler.device.type == "cuda":
            torch.cuda.synchronize()  # what was asked for is done, not enqueued, and errors are this request's
        reply["ok"] = True
    except Unsupported as error:
        reply = {"ok": False, "error": describe_exception(TaskError("unsupported", str(error)), handler.own_files)}
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001: whatever a model raises is reported
        reply = {"ok": False, "error": describe_exception(error, handler.own_files)}
        error.__traceback__ = None
    worker.send(json.dumps(reply))
    return True


def main():
    """Entry of the process: the configuration is JSON in argv[1]."""
    config = json.loads(sys.argv[1])
    sys.argv = [""]
    for path in config["paths"]:
        if path not in sys.path:
            sys.path.append(path)
    if config["hidden"]:
        _cuda_agent.hide()
    worker = _cuda_agent.Worker(config["fd"])
    _cuda_agent.cache_cpu_memory()
    _cuda_agent.start_witness()
    torch.set_num_threads(config["threads"])
    precision = pin_precision(config["tf32"])
    role = {"reference": Reference, "candidate": Candidate}[config["role"]]
    handler = role(worker, config)
    gc.disable()
    # The first parallel region starts the thread pool: better here than inside a timed call.
    torch.ones(1 << 16).add_(1)
    worker.send(
        json.dumps(
            {
                "ok": True,
                "ready": True,
                "at": time.monotonic(),
                "torch": torch.__version__,
                "python": sys.version.split()[0],
                "threads": torch.get_num_threads(),
                "precision": precision,
            }
        )
    )
    while answer(handler, worker):
        pass
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
