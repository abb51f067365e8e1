"""The outside clock agrees with CUDA events inside one stream."""

import statistics

import pytest
import torch

from gpu_harness import judged, times
from harness import reference_as_candidate

TASK = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, *x):
        return {operation}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""

SQUARE = "torch.randn({n}, {n})"
OPERATIONS = {
    "copy": ("x[0].clone()", SQUARE),
    "relu": ("torch.relu(x[0])", SQUARE),
    "softmax": ("torch.softmax(x[0], -1)", SQUARE),
    "layer_norm": ("torch.nn.functional.layer_norm(x[0], x[0].shape[-1:])", SQUARE),
    "matmul": ("x[0] @ x[1]", SQUARE + ", " + SQUARE),
}
SIZES = [("copy", 1024), ("copy", 8192), ("relu", 4096), ("relu", 16384), ("softmax", 4096), ("layer_norm", 8192), ("matmul", 1024), ("matmul", 4096)]


def by_events(task, n):
    """Median microseconds of the operation between two events, the cache flushed, the launches queued behind a spin."""
    names = {}
    exec(task, names)
    with torch.device("cuda"):
        inputs = names["get_inputs"]()
    model = names["Model"]()
    flush = torch.empty(128 << 20, dtype=torch.uint8, device="cuda")
    spans, empty = [], []
    for turn in range(30):
        first, middle, last = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        flush.fill_(turn)
        torch.cuda._sleep(400_000)
        first.record()
        middle.record()
        model(*inputs)
        last.record()
        torch.cuda.synchronize()
        if turn >= 5:
            spans.append(middle.elapsed_time(last) * 1e3)
            empty.append(first.elapsed_time(middle) * 1e3)
    return statistics.median(spans) - statistics.median(empty)


@pytest.mark.parametrize(("name", "n"), SIZES)
def test_agrees_with_events(name, n, tmp_path, table):
    torch.backends.cuda.matmul.allow_tf32 = False
    operation, inputs = OPERATIONS[name]
    task = TASK.format(operation=operation, inputs=inputs.format(n=n))
    (tmp_path / "model.py").write_text(task)
    answer = judged("run", reference_as_candidate(tmp_path / "model.py", tmp_path / "workspace"), "--baseline", "eager")
    assert answer.code == 0, str(answer)
    inside = by_events(task, n)
    speed = answer.verdict["speed"]
    ours = times(answer.verdict)
    table(f"{name} {n}", events=inside, **ours, null=speed["arms"][0]["null"], K=speed["calls_per_round"], difference=ours["eager"] - inside)
    assert abs(ours["eager"] - inside) < max(3.0, 0.03 * inside)
