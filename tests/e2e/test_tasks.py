"""Every task file of tests/tasks, with its own Model as candidate, is correct: the shapes that a task can have."""

import pytest

from harness import NO_POLICY, TASKS, judged, reference_as_candidate

NAMES = sorted(path.parent.name for path in TASKS.glob("*/model.py"))


def test_there_are_thirty():
    assert len(NAMES) == 30


@pytest.mark.parametrize("name", NAMES)
def test_reference_is_correct_as_candidate(name, tmp_path):
    workspace = reference_as_candidate(TASKS / name / "model.py", tmp_path / name)
    answer = judged("verify", workspace, *NO_POLICY)
    assert answer.code == 0, str(answer)
    assert answer.verdict["correctness"]["passed"] == 5
