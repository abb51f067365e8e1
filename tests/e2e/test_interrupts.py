"""Ctrl-C and SIGTERM at each stage: code 130, one JSON object, nothing left running, the lock free, the next ask right.

A stage is known by the line of progress with which it begins. Where a stage could be over before the signal comes, the
candidate or the task waits there for ever.
"""

import fcntl
import os
import re
import signal
import time

import pytest

import harness
from harness import TEMPLATE_BOMB, TINY_MODEL, nothing_left, passes, tiny_candidate

FOREVER = "while True:\n    pass\n"
ENDLESS = tiny_candidate("[None for _ in iter(int, 1)]")

# Name: command, what is changed, the line of progress at which the signal is sent.
STAGES = {
    "preparing": ("verify", {}, "looking for Python"),
    "compiling": ("compile", {"kernels/bomb_cpu.cpp": TEMPLATE_BOMB}, r"compiling.*bomb_cpu\.cpp"),
    "starting the workers": ("verify", {}, "starting the workers"),
    "loading the task": ("verify", {"model.py": FOREVER + TINY_MODEL}, "loading the task"),
    "measuring the overhead": ("run", {}, "measuring the overhead"),
    "loading the candidate": ("verify --policy none", {"model_new.py": FOREVER + tiny_candidate()}, "loading the candidate"),
    "checking": ("verify --policy none", {"model_new.py": ENDLESS}, "checking: trial 1"),
    "torch.compile": ("run", {}, "torch.compile"),
    "timing": ("profile --baseline eager", {}, "timing the arms"),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return harness.tiny_workspace(tmp_path_factory.mktemp("interrupts") / "workspace")


def interrupted(workspace, command, line, signal_number):
    """Sends a signal as a terminal or a job scheduler would, once the line is there; checks what comes of it."""
    asked = harness.start(*command.split(), workspace, "--device", "cpu", "--json", bufsize=0, start_new_session=True)
    harness.wait_for_line(asked, line)
    sent = time.monotonic()
    if signal_number == signal.SIGINT:
        os.killpg(asked.pid, signal_number)
    else:
        os.kill(asked.pid, signal_number)
    answer = harness.finish(asked, sent, timeout=60)
    verdict = answer.verdict
    assert (answer.code, verdict["outcome"]) == (130, "interrupted"), str(answer)
    assert verdict["exit_code"] == 130
    assert verdict["reward"]["value"] is None
    assert verdict["message"] == ("interrupted" if signal_number == signal.SIGINT else "stopped by SIGTERM")
    nothing_left(workspace)
    return answer


@pytest.mark.parametrize("stage", STAGES)
def test_at_stage(workspace, stage):
    command, changes, line = STAGES[stage]
    kept = {name: (workspace / name).read_text() for name in ("model.py", "model_new.py")}
    for name, text in changes.items():
        (workspace / name).write_text(text)
    try:
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            interrupted(workspace, command, line, signal_number)
    finally:
        for name in changes:
            (workspace / name).unlink()
        for name, text in kept.items():
            (workspace / name).write_text(text)
    passes(workspace)


def test_while_waiting_for_another(workspace):
    (workspace / ".cuda-agent").mkdir(exist_ok=True)
    with (workspace / ".cuda-agent" / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        asked = harness.start("verify", workspace, *harness.NO_POLICY, "--device", "cpu", "--json", bufsize=0, start_new_session=True)
        harness.wait_for_line(asked, "waiting for the workspace")
        os.killpg(asked.pid, signal.SIGINT)
        answer = harness.finish(asked, time.monotonic(), timeout=60)
    assert (answer.code, answer.verdict["outcome"]) == (130, "interrupted"), str(answer)
    passes(workspace)


def test_without_json_it_says_one_line(workspace):
    (workspace / "model_new.py").write_text(ENDLESS)
    asked = harness.start("verify", workspace, *harness.NO_POLICY, "--device", "cpu", bufsize=0, start_new_session=True)
    harness.wait_for_line(asked, "checking: trial 1")
    os.killpg(asked.pid, signal.SIGINT)
    answer = harness.finish(asked, time.monotonic(), timeout=60)
    assert answer.code == 130, str(answer)
    assert re.search("interrupted", answer.out + answer.err)
    nothing_left(workspace)


def test_killed_outright(workspace):
    """SIGKILL leaves no time to clean up: the workers die all the same, and the next ask takes over."""
    (workspace / "model_new.py").write_text(ENDLESS)
    asked = harness.start("verify", workspace, *harness.NO_POLICY, "--device", "cpu", "--json", bufsize=0)
    harness.wait_for_line(asked, "checking: trial 1")
    asked.kill()
    asked.communicate(timeout=60)
    assert harness.left_running() == []
    assert harness.lock_is_free(workspace)
    passes(workspace)
