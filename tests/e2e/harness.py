"""What the end-to-end tests share: running the binary as a user would, and making workspaces to run it on."""

import ctypes
import json
import os
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
CACHE = BINARY.resolve().parent.parent / "e2e-cache"

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
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = str(value)
    return result


def start(*arguments, cwd=None, env=None, **options):
    """A running command, for tests that interrupt it."""
    return subprocess.Popen(
        [str(BINARY), *map(str, arguments)],
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


def judged(command, workspace, *arguments, **options):
    """`cuda-agent COMMAND WORKSPACE --device cpu --json ARGUMENTS`."""
    return cuda_agent(command, workspace, "--device", "cpu", "--json", *arguments, **options)


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
