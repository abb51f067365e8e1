"""Tasks that strain the way of timing or the memory."""

import subprocess
import threading

import pytest

from gpu_harness import gpu_lock, judged, memory_in_use, times
from harness import NO_POLICY, reference_as_candidate

TASK = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        {body}


def get_inputs():
    return [torch.rand({shape})]


def get_init_inputs():
    return []
"""


def workspace(folder, body, shape):
    folder.mkdir()
    (folder / "task.py").write_text(TASK.format(body=body, shape=shape))
    return reference_as_candidate(folder / "task.py", folder / "workspace")


def row_of(verdict):
    speed = verdict["speed"]
    ratio = speed["ratios"][0]["ratio"]
    return {"mode": speed["mode"], "rounds": speed["rounds"], "ratio": ratio["estimate"], "low": ratio["low"], "high": ratio["high"], **times(verdict)}


def test_many_launches_are_held_behind_the_gate(tmp_path, table):
    body = "for _ in range(1500):\n            x = x + 1\n        return x"
    answer = judged("run", workspace(tmp_path / "many", body, "4096"), *NO_POLICY, "--baseline", "eager")
    assert answer.code == 0, str(answer)
    table("special: 1,500 launches", **row_of(answer.verdict))
    assert answer.verdict["speed"]["mode"] == "gated", answer.verdict["speed"]["disturbed"]


def test_a_model_that_waits_for_the_gpu_is_timed_from_end_to_end(tmp_path, table):
    body = "return x * (2.0 if x.sum().item() > 0 else 3.0)"
    answer = judged("run", workspace(tmp_path / "waits", body, "1 << 20"), *NO_POLICY, "--baseline", "eager")
    assert answer.code == 0, str(answer)
    table("special: waits for the host", **row_of(answer.verdict), disturbed="; ".join(answer.verdict["speed"]["disturbed"]))
    assert answer.verdict["speed"]["mode"] == "end_to_end"
    assert any("waits for the GPU" in one for one in answer.verdict["speed"]["disturbed"])


class Peak:
    """The most memory of the first GPU that was in use while it ran."""

    def __enter__(self):
        self.most = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self):
        while not self._end.wait(0.05):
            self.most = max(self.most, memory_in_use())

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


@pytest.fixture(scope="module")
def empty():
    """Bytes that are in use when nothing runs."""
    with gpu_lock():
        return memory_in_use()


def test_large_inputs_and_results_fit_as_planned(tmp_path, table, empty):
    large = workspace(tmp_path / "large", "return x[0] + x[1]", "2, 1 << 30")
    with Peak() as peak:
        answer = judged("run", large, *NO_POLICY, "--baseline", "eager")
    assert answer.code == 0, str(answer)
    planned = int(answer.verdict["environment"]["memory.planned"])
    used = peak.most - empty
    table("special: 8.6 GB in, 4.3 GB out", seconds=answer.seconds, planned=planned / 1e9, peak=used / 1e9, **row_of(answer.verdict))
    # Beside the plan: three contexts with their libraries, and what torch keeps of a drawing.
    assert used < planned + 12e9


@pytest.mark.parametrize("shape", ["12, 1 << 30", "64, 1 << 30"], ids=["candidate", "reference"])
def test_what_cannot_fit_is_refused(shape, tmp_path, table):
    answer = judged("verify", workspace(tmp_path / "huge", "return x * 2", shape), *NO_POLICY)
    table(f"special: {shape} floats", code=answer.code, seconds=answer.seconds, message=answer.verdict["message"][:140])
    assert (answer.code, answer.verdict["fault"]) == (3, "environment"), str(answer)
    assert answer.verdict["reward"]["value"] is None


def test_another_gpu_than_those_visible_is_refused(tmp_path):
    uuid = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"], capture_output=True, text=True, check=True).stdout.split()[0]
    small = workspace(tmp_path / "small", "return x * 2", "1024")
    chosen = judged("verify", small, *NO_POLICY, "--gpu", uuid)
    assert chosen.code == 0 and chosen.verdict["environment"]["device.uuid"] == uuid, str(chosen)
    hidden = judged("verify", small, *NO_POLICY, env={"CUDA_VISIBLE_DEVICES": ""})
    assert (hidden.code, hidden.verdict["fault"]) == (3, "environment"), str(hidden)
    other = judged("verify", small, *NO_POLICY, "--gpu", "7")
    assert other.code == 3 and uuid in other.verdict["message"], str(other)
