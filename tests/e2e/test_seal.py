"""What a candidate's worker has given up before it hears of its candidate."""

import pytest

from harness import NO_POLICY, TINY_KERNEL, expect, judged, tiny_workspace

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


# Continues its process every millisecond, whoever has stopped it. By many timers: a stop takes away a signal that is on
# its way, and a timer whose signal was taken away is not started again.
TIMER = """
#include <csignal>
#include <ctime>

static const bool timers_run = [] {
  std::signal(SIGCONT, [](int) {});
  bool run = true;
  for (int i = 0; i < 64; ++i) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGCONT;
    timer_t timer{};
    itimerspec often{};
    often.it_value.tv_nsec = often.it_interval.tv_nsec = 1000000 + 10000 * i;
    run = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &often, nullptr) == 0 && run;
  }
  return run;
}();
"""


def test_a_candidate_that_continues_itself_is_kept_from_it_and_found_out_otherwise(tmp_path):
    made = tiny_workspace(tmp_path / "workspace", kernel=TIMER + TINY_KERNEL)
    expect(judged("verify", made, *NO_POLICY), 0, "pass", fault="none")
    answer = judged("verify", made, *NO_POLICY, "--without", "seal")
    verdict = expect(answer, 4, "policy_violation", "running while it should have been stopped")
    assert not in_force(verdict, "system-call filter")


def in_force(verdict, name):
    return next(one["in_force"] for one in verdict["protections"] if one["name"] == name)
