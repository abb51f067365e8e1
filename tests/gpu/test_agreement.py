"""The outside clock agrees with CUDA events inside one stream."""

import os
import subprocess
from pathlib import Path

import pytest

from gpu_harness import judged, times
from harness import NO_POLICY, reference_as_candidate

TASK = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, w):
        for _ in range({repeats}):
            x = {operation}
        return x


def get_inputs():
    return [torch.randn({n}, {n}), torch.randn({n}, {n}) / {n} ** 0.5]


def get_init_inputs():
    return []
"""

OPERATIONS = {
    "copy": "x.clone()",
    "relu": "torch.relu(x)",
    "softmax": "torch.softmax(x, -1)",
    "layer_norm": "torch.nn.functional.layer_norm(x, x.shape[-1:])",
    "matmul": "x @ w",
}
# Side of the matrix, and calls of the operator: about 10 µs, 100 µs, 1 ms and 10 ms.
SIZES = [(name, n, repeats) for name in ("copy", "relu", "softmax", "layer_norm") for n, repeats in ((2048, 1), (6144, 1), (8192, 7), (8192, 70))]
SIZES += [("matmul", 512, 1), ("matmul", 1280, 1), ("matmul", 2944, 1), ("matmul", 6144, 1)]


def by_events(task, calls):
    """Microseconds a call between two CUDA events, measured in a process that has ended when this returns."""
    script = Path(__file__).with_name("by_events.py")
    done = subprocess.run([os.environ["CUDA_AGENT_PYTHON"], script, task, str(calls)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.parametrize(("name", "n", "repeats"), SIZES)
def test_agrees_with_events(name, n, repeats, tmp_path, table):
    task = TASK.format(operation=OPERATIONS[name], n=n, repeats=repeats)
    (tmp_path / "model.py").write_text(task)
    answer = judged("run", reference_as_candidate(tmp_path / "model.py", tmp_path / "workspace"), *NO_POLICY, "--baseline", "eager")
    assert answer.code == 0, str(answer)
    speed = answer.verdict["speed"]
    inside = by_events(tmp_path / "model.py", speed["calls_per_round"])
    ours = times(answer.verdict)
    table(f"agreement: {name} {n} x{repeats}", events=inside, **ours, null=speed["arms"][0]["null"], K=speed["calls_per_round"], difference=ours["eager"] - inside)
    assert abs(ours["eager"] - inside) < max(1.0, 0.02 * inside)
