"""What the end-to-end tests share: running the binary as a user would, and making workspaces to run it on."""

import ctypes
import fcntl
import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "agent_workdir"
TASKS = REPOSITORY / "tests" / "tasks"
BINARY = Path(os.environ.get("CUDA_AGENT_BINARY", REPOSITORY / "build" / "src" / "cuda-agent"))

# One cache for all test files, so that the precompiled header is built once.
CACHE = Path(os.environ.get("CUDA_AGENT_CACHE", BINARY.resolve().parent.parent / "e2e-cache"))

# Inherited variables that would change what is tested.
UNWANTED = ("CUDA_AGENT", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "CXX", "NO_COLOR", "TORCH_CUDA_ARCH_LIST")


@dataclass
class Answer:
    """What one command came to."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def verdict(self):
        """The one JSON object on stdout (with --json there is nothing else)."""
        return json.loads(self.out)

    def __str__(self):
        return f"exit code {self.code} after {self.seconds:.1f} s\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def environment(**changes):
    """The environment of a command; a value of None removes a variable."""
    result = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    result["CUDA_AGENT_CACHE"] = str(CACHE)
    result["CI"] = "true"  # no session: test_session.py tests that
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = str(value)
    return result


def start(*arguments, cwd=None, env=None, before=(), **options):
    """A running command, for tests that interrupt it; `before` is a command line that starts another one."""
    return subprocess.Popen(
        [*before, str(BINARY), *map(str, arguments)],
        cwd=cwd,
        env=environment(**(env or {})),
        stdin=options.pop("stdin", subprocess.DEVNULL),
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=options.pop("stderr", subprocess.PIPE),
        **options,
    )


def finish(process, started, timeout=300):
    """Waits for a command of `start`."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"no answer within {timeout} s: {err.decode(errors='replace')[-4000:]}") from None
    return Answer(process.returncode, out.decode(), err.decode(), time.monotonic() - started)


def cuda_agent(*arguments, cwd=None, env=None, timeout=300, **options):
    """Runs `cuda-agent ARGUMENTS` and returns its Answer. `env` holds changes of the environment."""
    started = time.monotonic()
    return finish(start(*arguments, cwd=cwd, env=env, **options), started, timeout)


# For candidates that break rules on purpose, or leave the work to torch, where something else is tested.
NO_POLICY = ("--policy", "none")


def judged(command, workspace, *arguments, **options):
    """`cuda-agent COMMAND WORKSPACE --device cpu --json ARGUMENTS`."""
    return cuda_agent(command, workspace, "--device", "cpu", "--json", *arguments, **options)


def expect(answer, code, outcome, *words, fault="candidate"):
    """The verdict of an answer with this exit code, outcome and fault, whose message matches all `words`."""
    verdict = answer.verdict
    assert (answer.code, verdict["outcome"], verdict["fault"]) == (code, outcome, fault), str(answer)
    assert verdict["exit_code"] == code
    for word in words:
        assert re.search(word, verdict["message"]), verdict["message"]
    return verdict


def adopt_orphans():
    """From now on processes that lose their parent become this process's children, so that they can be seen."""
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def left_running(within=5.0):
    """Command lines of this process's children that are still alive after `within` seconds."""
    end = time.monotonic() + within
    while True:
        alive = []
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
                if int(fields["PPid"]) == os.getpid() and not fields["State"].startswith("Z"):
                    alive.append((status.parent / "cmdline").read_text().replace("\0", " "))
            except (OSError, ValueError, KeyError):
                continue
        if not alive or time.monotonic() > end:
            return alive
        time.sleep(0.05)


def lock_is_free(workspace):
    """True when no process holds the workspace's lock."""
    lock = Path(workspace) / ".cuda-agent" / "lock"
    if not lock.exists():
        return True
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def left_in_scratch(workspace):
    """What asks have left in the workspace's scratch folder: nothing, once they have ended."""
    scratch = Path(workspace) / ".cuda-agent" / "tmp"
    return sorted(path.name for path in scratch.iterdir()) if scratch.is_dir() else []


def copy_example(into, *, model=None, model_new=None, kernels=None):
    """A copy of the example workspace, with files replaced; a kernel of None is removed."""
    ignored = shutil.ignore_patterns(".cuda-agent", "__pycache__", "cuda_extension.so", ".agents", ".claude")
    shutil.copytree(EXAMPLE, into, ignore=ignored)
    if model is not None:
        (into / "model.py").write_text(model)
    if model_new is not None:
        (into / "model_new.py").write_text(model_new)
    for name, text in (kernels or {}).items():
        if text is None:
            (into / "kernels" / name).unlink()
        else:
            (into / "kernels" / name).write_text(text)
    return into


# The least that compiles and registers something.
NOTHING_BINDING = """#include "../binding_registry.h"

static void bind_nothing(pybind11::module& m) {
  m.def("nothing", [] { return 0; });
}
REGISTER_BINDING(nothing, bind_nothing);
"""


def reference_as_candidate(model, into):
    """A workspace whose candidate is the task's own Model."""
    into.mkdir(parents=True)
    text = Path(model).read_text()
    (into / "model.py").write_text(text)
    (into / "model_new.py").write_text(text + "\n\nModelNew = Model\n")
    (into / "kernels").mkdir()
    (into / "kernels" / "nothing_binding.cpp").write_text(NOTHING_BINDING)
    return into


# Doubles its work with every level: no compiler comes to an end.
TEMPLATE_BOMB = """
template <class A, class B> struct P {};
template <int N, class T> struct G {
  static constexpr int v = G<N - 1, P<T, int>>::v + G<N - 1, P<int, T>>::v;
};
template <class T> struct G<0, T> { static constexpr int v = 1; };
int bomb = G<26, int>::v;
"""

# A task that takes no time: all of an ask's seconds are those of starting it.
TINY_MODEL = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale
        self.weight = nn.Parameter(torch.rand(64))

    def forward(self, x):
        return torch.relu(x) * self.scale * self.weight


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return [2.0]
"""

# Right with mode 0. The other modes go wrong in C++; they share one source so that it is compiled once.
TINY_KERNEL = """#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" void tiny_run(float* out, const float* x, const float* weight, float scale, std::int64_t rows,
                         std::int64_t columns, std::int64_t mode) {
  if (mode == 1) *reinterpret_cast<volatile int*>(16) = 1;
  if (mode == 2) std::abort();
  if (mode == 3) std::exit(0);
  if (mode == 4) {
    for (volatile int forever = 1; forever != 0;) {
    }
  }
  if (mode == 5) {
    std::string const line(99, 'x');
    for (int i = 0; i < 1000 * 1000; ++i) std::puts(line.c_str());
  }
  if (mode == 6) std::fputs("\\033[2J\\033]0;owned\\007\\033[31mred\\r", stdout);
  if (mode == 7) std::fwrite("\\xff\\xfe\\x00", 1, 3, stdout);
  std::fflush(stdout);
  std::int64_t const count = rows * columns;
  for (std::int64_t i = 0; i < count; ++i) out[i] = (x[i] > 0 ? x[i] : 0) * scale * weight[i % columns];
  if (mode == 8) out[count - 1] += 1;
  if (mode == 9) out[count / 2] = std::nanf("");
  // Steps of a fixed size until the first value is passed: ends at once for small values only.
  if (mode == 10) {
    for (volatile float at = 0; at < x[0]; at = at + 1e-3F) {
    }
  }
}
"""

TINY_BINDING = """#include <cstdint>

#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>

#include "../binding_registry.h"

extern "C" void tiny_run(float* out, const float* x, const float* weight, float scale, std::int64_t rows,
                         std::int64_t columns, std::int64_t mode);

static torch::Tensor tiny(const torch::Tensor& x, const torch::Tensor& weight, double scale, std::int64_t mode) {
  TORCH_CHECK(mode != 11, "tiny: mode 11 is refused");
  torch::Tensor out = torch::empty_like(x);
  tiny_run(out.data_ptr<float>(), x.data_ptr<float>(), weight.data_ptr<float>(), static_cast<float>(scale), x.size(0),
           x.size(1), mode);
  return out;
}

static void bind_tiny(pybind11::module& m) { m.def("tiny", &tiny); }
REGISTER_BINDING(tiny, bind_tiny);
"""

TINY_MODEL_NEW = """import torch
import torch.nn as nn

import cuda_extension


class ModelNew(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.scale = scale
        self.weight = nn.Parameter(torch.rand(64))

    def forward(self, x):
        return FORWARD
"""

TINY_FORWARD = "cuda_extension.tiny(x, self.weight, self.scale, 0)"


def tiny_candidate(forward=TINY_FORWARD):
    """model_new.py of the tiny task: what its forward returns, as an expression of `self` and `x`."""
    return TINY_MODEL_NEW.replace("FORWARD", forward)


def tiny_mode(mode):
    """model_new.py of the tiny task, with the kernel in one of its modes."""
    return tiny_candidate(TINY_FORWARD.replace(", 0)", f", {mode})"))


def recorded(workspace):
    """The verdicts in the history of a workspace, the oldest first."""
    history = Path(workspace) / ".cuda-agent" / "history.jsonl"
    return [json.loads(line) for line in history.read_text().splitlines()] if history.exists() else []


def tiny_workspace(into, *, model=TINY_MODEL, model_new=None, kernel=TINY_KERNEL, binding=TINY_BINDING):
    """A workspace for the tiny task; right unless told otherwise. Without `kernel` or `binding` the file is absent."""
    (into / "kernels").mkdir(parents=True, exist_ok=True)
    (into / "model.py").write_text(model)
    (into / "model_new.py").write_text(model_new or tiny_candidate())
    for name, text in (("tiny_cpu.cpp", kernel), ("tiny_binding.cpp", binding)):
        if text is not None:
            (into / "kernels" / name).write_text(text)
    return into


def nothing_left(workspace):
    """After an ask: no process, no lock, no scratch files."""
    assert left_running() == []
    assert lock_is_free(workspace)
    assert left_in_scratch(workspace) == []


def passes(workspace, *arguments, **options):
    """The next good ask on a workspace of the tiny task is right, whatever the last one was."""
    (workspace / "model_new.py").write_text(tiny_candidate())
    answer = judged("verify", workspace, "--trials", "1", *arguments, **options)
    assert answer.code == 0, str(answer)
    assert answer.verdict["outcome"] == "pass"
    assert answer.verdict["correctness"]["passed"] == 1
    nothing_left(workspace)


def wait_for_line(process, text):
    """Reads the standard error of a command of `start` (with bufsize=0) until a line matches a regular expression."""
    lines = []
    while line := process.stderr.readline().decode():
        lines.append(line)
        if re.search(text, line):
            return lines
    raise AssertionError(f"ended without saying '{text}':\n" + "".join(lines))
