"""What the machine lacks: exit code 3, the environment's fault, what is missing and what to do, and no reward."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import harness
from harness import cuda_agent, judged, nothing_left, passes

HIDES = shutil.which("bwrap")


def namespaces_work():
    probe = [HIDES or "bwrap", "--dev-bind", "/", "/", "true"]
    return HIDES is not None and subprocess.run(probe, capture_output=True, check=False).returncode == 0


needs_mounts = pytest.mark.skipif(not namespaces_work(), reason="no mount namespaces here")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return harness.tiny_workspace(tmp_path_factory.mktemp("faults") / "workspace")


def expect(answer, *words):
    verdict = harness.expect(answer, 3, "environment_error", *words, fault="environment")
    assert verdict["reward"]["value"] is None
    assert verdict["hints"], verdict["message"]
    return verdict


@pytest.fixture
def few_tools(tmp_path):
    """A PATH with bubblewrap and without compilers."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bwrap", "env", "sh"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    return tools


def python_of_the_tests():
    python = os.environ.get("CUDA_AGENT_PYTHON") or shutil.which("python3")
    return str(Path(python).absolute())


# --- tools ------------------------------------------------------------------------------------------------------------


def test_no_compiler(workspace, few_tools):
    answer = judged("verify", workspace, "--python", python_of_the_tests(), env={"PATH": few_tools})
    verdict = expect(answer, r"no C\+\+ compiler", "g\\+\\+")
    assert any("apt-get install g++" in hint for hint in verdict["hints"])
    nothing_left(workspace)
    passes(workspace)


def test_compiler_that_is_named_and_missing(workspace):
    expect(judged("compile", workspace, env={"CXX": "/nowhere/g++"}), "CXX is .*/nowhere/g\\+\\+")
    nothing_left(workspace)


def test_compiler_that_does_not_work(workspace):
    expect(judged("compile", workspace, env={"CXX": shutil.which("false")}), "false --version ended with", "code 1")
    nothing_left(workspace)


def test_no_nvcc(workspace, tmp_path):
    answer = cuda_agent("compile", workspace, "--arch", "90a", "--json", env={"CUDA_HOME": tmp_path})
    verdict = expect(answer, "no nvcc", f"CUDA_HOME is {re.escape(str(tmp_path))}")
    assert any("CUDA Toolkit" in hint for hint in verdict["hints"])
    nothing_left(workspace)


def test_interpreter_without_torch(workspace, tmp_path):
    bare = tmp_path / "bare"
    base = Path(sys.base_prefix) / "bin" / "python3"
    subprocess.run([base, "-m", "venv", "--without-pip", bare], check=True, capture_output=True)
    answer = judged("verify", workspace, "--python", bare / "bin" / "python")
    verdict = expect(answer, "torch", re.escape(str(bare)))
    assert any("pip install torch" in hint for hint in verdict["hints"])
    nothing_left(workspace)
    passes(workspace)


def test_interpreter_that_is_missing(workspace):
    expect(judged("verify", workspace, "--python", "/nowhere/python"), "/nowhere/python")
    nothing_left(workspace)


def test_no_gpu(workspace):
    answer = cuda_agent("verify", workspace, "--device", "cuda", "--json")
    expect(answer, "CUDA|GPU")
    nothing_left(workspace)


# --- the workspace ----------------------------------------------------------------------------------------------------


def test_workspace_that_is_missing(tmp_path):
    verdict = expect(judged("run", tmp_path / "nowhere"), "nowhere: No such file or directory")
    assert any("cuda-agent init" in hint for hint in verdict["hints"])
    assert not (tmp_path / "nowhere").exists()


def test_workspace_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    expect(judged("run", tmp_path / "file"), "is a file, expected a folder")


def test_folder_that_is_no_workspace(tmp_path):
    expect(judged("run", tmp_path), "is no workspace", r"model_new\.py")
    assert list(tmp_path.iterdir()) == []


def in_mounts(*mounts, command):
    done = subprocess.run(
        [HIDES, "--dev-bind", "/", "/", *map(str, mounts), *map(str, command)],
        env=harness.environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return harness.Answer(done.returncode, done.stdout, done.stderr, 0)


@needs_mounts
@pytest.mark.parametrize("used_before", [False, True])
def test_read_only_workspace(tmp_path, used_before):
    workspace = harness.tiny_workspace(tmp_path / "workspace")
    if used_before:
        assert judged("compile", workspace).code == 0
    command = [harness.BINARY, "verify", workspace, "--device", "cpu", "--json"]
    answer = in_mounts("--ro-bind", workspace, workspace, command=command)
    expect(answer, re.escape(str(workspace)), "Read-only file system")
    if used_before:
        nothing_left(workspace)
        passes(workspace)


def on_a_small_disk(workspace, free):
    """verify on a copy of the workspace on a file system of one MiB with `free` bytes of it left."""
    small = workspace.parent / "small"
    small.mkdir(exist_ok=True)
    script = (
        'set -e; cp -r "$1"/model.py "$1"/model_new.py "$1"/kernels "$0"; head -c "$2" /dev/zero >"$0/space"; shift 2; '
        'dd if=/dev/zero of="$0/full" bs=4096 2>/dev/null || true; rm "$0/space"; exec "$@"'
    )
    command = ["sh", "-c", script, small, workspace, free]
    command += [harness.BINARY, "verify", small, "--device", "cpu", "--json"]
    return in_mounts("--size", 1 << 20, "--tmpfs", small, command=command)


@needs_mounts
@pytest.mark.parametrize("free", [0, 4096, 16384, 65536])
def test_full_disk(workspace, free):
    """Full from the start, for the first folder, for the snapshot, for the extension."""
    expect(on_a_small_disk(workspace, free), "disk full", "small")
    assert harness.left_running() == []


@needs_mounts
def test_full_disk_under_the_cache(workspace, tmp_path):
    """Without the precompiled header, which alone would take most of the time."""
    cache = tmp_path / "cache"
    cache.mkdir()
    binding = workspace / "kernels" / "tiny_binding.cpp"
    binding.write_text(PLAIN_BINDING)
    command = ["env", f"CUDA_AGENT_CACHE={cache}", harness.BINARY, "compile", workspace, "--device", "cpu", "--json"]
    answer = in_mounts("--size", 1 << 20, "--tmpfs", cache, command=command)
    expect(answer, "disk full")
    nothing_left(workspace)
    binding.write_text(harness.TINY_BINDING)
    passes(workspace)


# Needs pybind11 alone.
PLAIN_BINDING = """#include "../binding_registry.h"

static void bind_nothing(pybind11::module& m) {
  m.def("nothing", [] { return 0; });
}
REGISTER_BINDING(nothing, bind_nothing);
"""


# --- two at once ------------------------------------------------------------------------------------------------------


def test_second_run_waits_and_says_for_whom(workspace):
    (workspace / "model_new.py").write_text(harness.tiny_candidate())
    command = ("verify", workspace, "--device", "cpu", "--json", "--trials", "1")
    first = harness.start(*command, bufsize=0)
    started = time.monotonic()
    harness.wait_for_line(first, "starting the workers")
    second = cuda_agent(*command)
    answer = harness.finish(first, started)
    for one in (answer, second):
        assert one.code == 0, str(one)
        assert one.verdict["correctness"]["passed"] == 1
    assert re.search(rf"waiting for the workspace, which is held by pid {first.pid}: cuda-agent verify ", second.err)
    assert second.verdict["timings"]["wait"] > 0.1
    nothing_left(workspace)


def test_a_gpu_for_the_cpu_is_wrong_usage(workspace):
    answer = judged("verify", workspace, "--gpu", "0")
    assert (answer.code, answer.verdict["outcome"]) == (2, "usage_error"), str(answer)
    assert "--gpu names a GPU, and --device cpu uses none" in answer.verdict["message"]
    assert answer.verdict["hints"]


def test_waiting_has_an_end(workspace):
    (workspace / ".cuda-agent").mkdir(exist_ok=True)
    with (workspace / ".cuda-agent" / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = judged("verify", workspace, "--timeout", "0.5")
    verdict = answer.verdict
    assert (answer.code, verdict["outcome"], verdict["fault"]) == (8, "timeout", "environment"), str(answer)
    assert "waiting for the workspace" in verdict["message"]
    passes(workspace)
