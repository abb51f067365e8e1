"""The look at a task before anything is judged: what any candidate would pass carries no reward."""

import pytest

from harness import TINY_KERNEL, TINY_MODEL, expect, judged, tiny_workspace

MODEL_LINE = "return torch.relu(x) * self.scale * self.weight"
KERNEL_LINE = "out[i] = (x[i] > 0 ? x[i] : 0) * scale * weight[i % columns];"


def workspace(into, returned, computed):
    assert MODEL_LINE in TINY_MODEL and KERNEL_LINE in TINY_KERNEL
    return tiny_workspace(into, model="import time\n" + TINY_MODEL.replace(MODEL_LINE, f"return {returned}"), kernel=TINY_KERNEL.replace(KERNEL_LINE, f"out[i] = {computed};"))


@pytest.mark.parametrize(
    ("returned", "computed", "said"),
    [
        ("torch.relu(x) * 0 + self.scale", "scale", "the same on 8 different draws"),
        ("torch.relu(x) * 0", "0 * scale", "every value that Model returns is zero"),
        ("x + 0", "x[i]", "returns its input 0 as it is"),
    ],
    ids=["constant", "zeros", "input"],
)
def test_a_task_that_anything_would_pass_is_degenerate(returned, computed, said, tmp_path):
    verdict = expect(judged("verify", workspace(tmp_path / "w", returned, computed)), 0, "pass", fault="none")
    assert [one["kind"] for one in verdict["task"]["findings"]] == ["degenerate"]
    assert said in verdict["task"]["findings"][0]["message"]
    assert verdict["reward"]["value"] is None and "degenerate" in verdict["reward"]["reason"]


def test_a_task_that_differs_from_call_to_call_is_nondeterministic(tmp_path):
    made = workspace(tmp_path / "w", "torch.relu(x) * self.scale * self.weight + time.perf_counter_ns() % 1009", "0 * scale")
    verdict = judged("verify", made).verdict
    assert [one["kind"] for one in verdict["task"]["findings"]] == ["nondeterministic"], verdict["task"]
    assert verdict["reward"]["value"] is None


def test_a_task_of_few_values_is_not_taken_for_a_constant_one(tmp_path):
    # With this seed the first two draws give the same.
    made = workspace(tmp_path / "w", "torch.sign(x[0, 0]).expand_as(x) + 0 * x", "x[0] > 0 ? 1.0F : -1.0F")
    verdict = expect(judged("verify", made, "--seed", "1"), 0, "pass", fault="none")
    assert verdict["task"]["findings"] == []
