"""Every task of tests/tasks with its own Model as candidate: right, and as fast as itself."""

import os

import pytest

from gpu_harness import judged, times
from harness import NO_POLICY, TASKS, reference_as_candidate

# The sizes that the tasks are published with, not those for two processor cores.
SIZES = "PUBLISHED = "

LOCKED = ("device", "task", "overheads", "load", "verify", "profile")
NAMES = sorted(path.parent.name for path in TASKS.glob("*/model.py"))

# Each a new pair of processes. Three for a release: CUDA_AGENT_GPU_RESTARTS=3.
RESTARTS = range(int(os.environ.get("CUDA_AGENT_GPU_RESTARTS", "1")))


@pytest.mark.parametrize("restart", RESTARTS)
@pytest.mark.parametrize("name", NAMES)
def test_reference_is_correct_and_as_fast_as_itself(name, restart, tmp_path, table):
    task = tmp_path / "model.py"
    lines = (TASKS / name / "model.py").read_text().splitlines(keepends=True)
    task.write_text("".join(SIZES + "True\n" if line.startswith(SIZES) else line for line in lines))
    workspace = reference_as_candidate(task, tmp_path / name)
    answer = judged("run", workspace, *NO_POLICY, "--baseline", "eager")
    verdict = answer.verdict
    row = {"code": answer.code, "seconds": answer.seconds, "under_lock": sum(verdict["timings"].get(stage, 0) for stage in LOCKED)}
    if verdict.get("speed"):
        speed = verdict["speed"]
        ratio = speed["ratios"][0]["ratio"]
        row |= {"mode": speed["mode"], "K": speed["calls_per_round"], "rounds": speed["rounds"], "eager": times(verdict)["eager"]}
        row |= {"null": speed["arms"][0]["null"], "ratio": ratio["estimate"], "low": ratio["low"], "high": ratio["high"]}
        row |= {"between": speed["ratios"][0]["between_processes"], "chains": "{candidate:.1f} {reference:.1f} s{stream}".format(**speed["channels"])}
        row |= {"holds_1": ratio["low"] <= 1 <= ratio["high"]}
        row |= {"disturbed": "; ".join(speed["disturbed"])} if speed["disturbed"] else {}
    table(f"task {name} {restart}", **row)
    assert answer.code == 0, str(answer)
    assert verdict["correctness"]["passed"] == 5
    assert 0.8 < row["ratio"] < 1.25
