"""Every task of tests/tasks with its own Model as candidate: right, and as fast as itself."""

import pytest

from gpu_harness import judged, times
from harness import TASKS, reference_as_candidate

NAMES = sorted(path.parent.name for path in TASKS.glob("*/model.py"))


@pytest.mark.parametrize("name", NAMES)
def test_reference_is_correct_and_as_fast_as_itself(name, tmp_path, table):
    workspace = reference_as_candidate(TASKS / name / "model.py", tmp_path / name)
    answer = judged("run", workspace, "--baseline", "eager")
    verdict = answer.verdict
    row = {"code": answer.code, "seconds": answer.seconds}
    if verdict.get("speed"):
        speed = verdict["speed"]
        ratio = speed["ratios"][0]["ratio"]
        row |= {"mode": speed["mode"], "K": speed["calls_per_round"], "rounds": speed["rounds"], "eager": times(verdict)["eager"]}
        row |= {"null": speed["arms"][0]["null"], "ratio": ratio["estimate"], "low": ratio["low"], "high": ratio["high"]}
        row |= {"holds_1": ratio["low"] <= 1 <= ratio["high"]}
        row |= {"disturbed": "; ".join(speed["disturbed"])} if speed["disturbed"] else {}
    table(f"task {name}", **row)
    assert answer.code == 0, str(answer)
    assert verdict["correctness"]["passed"] == 5
    assert 0.8 < row["ratio"] < 1.25
