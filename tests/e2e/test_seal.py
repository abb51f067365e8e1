"""What a candidate's worker has given up before it hears of its candidate."""

import pytest

from harness import NO_POLICY, expect, judged, tiny_workspace

# Each in forward, where a candidate could do it on every call.
ATTEMPTS = {
    "starts a program": "import subprocess; subprocess.run(['/bin/true'])",
    "makes a process": "import os; os._exit(0) if os.fork() == 0 else None",
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_candidate_starts_no_process(attempt, tmp_path):
    workspace = tiny_workspace(tmp_path / "workspace")
    model = workspace / "model_new.py"
    text = model.read_text()
    at = text.index("def forward")
    line_end = text.index("\n", at) + 1
    model.write_text(text[:line_end] + f"        {ATTEMPTS[attempt]}\n" + text[line_end:])
    verdict = expect(judged("verify", workspace, *NO_POLICY), 6, "crash", "PermissionError")
    assert in_force(verdict, "system-call filter")


def test_an_honest_candidate_runs_under_the_seal(tmp_path):
    answer = judged("verify", tiny_workspace(tmp_path / "workspace"))
    assert answer.code == 0, str(answer)
    assert in_force(answer.verdict, "system-call filter")


def in_force(verdict, name):
    return next(one["in_force"] for one in verdict["protections"] if one["name"] == name)
