"""The resident session: the same answers as without it, from workers that are there already; nothing of one ask reaches
the next; whatever is killed, the next ask is right."""

import contextlib
import fcntl
import hashlib
import json
import os
import select
import shutil
import signal
import stat
import tempfile
import threading
import time
from pathlib import Path

import pytest

from harness import TINY_MODEL, cuda_agent, finish, left_in_scratch, lock_is_free, recorded, start, tiny_candidate, tiny_mode, tiny_workspace, wait_for_line

STARTED = "started a session"
WITHOUT = "judging without a session"
TINY_TASK = hashlib.sha256(TINY_MODEL.encode()).hexdigest()


def ended(pid, timeout=30):
    """Waits until a process that is no child of ours is gone."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            assert select.select([descriptor], [], [], timeout)[0], f"process {pid} is still there"
        finally:
            os.close(descriptor)


class Session:
    """Asks that go to sessions of a folder of their own."""

    def __init__(self, *options):
        self.folder = Path(tempfile.mkdtemp(prefix="cas-"))
        self.env = {"CI": None, "CUDA_AGENT_SESSIONS": self.folder / "s"}
        if options:
            assert self.command("start", *options).code == 0

    def command(self, *arguments):
        return cuda_agent("session", *arguments, env=self.env)

    def ask(self, workspace, *arguments, command="verify", **changes):
        return cuda_agent(command, workspace, "--device", "cpu", "--json", *arguments, env=self.env | changes)

    def start_ask(self, workspace, *arguments, **options):
        return start("verify", workspace, "--device", "cpu", "--json", *arguments, env=self.env, **options)

    def status(self):
        """Of the one session that is there; None without one."""
        answer = self.command("status", "--json")
        assert answer.code == 0, str(answer)
        sessions = json.loads(answer.out)["sessions"]
        assert len(sessions) <= 1
        return sessions[0] if sessions else None

    def until(self, wanted, timeout=60):
        """Asks for the status until it is as wanted."""
        end = time.monotonic() + timeout
        while not wanted(status := self.status()):
            assert time.monotonic() < end, status
        return status

    def workers(self):
        """Processes of Python under the session's."""
        children = lambda pid: [int(p) for t in Path(f"/proc/{pid}/task").iterdir() for p in (t / "children").read_text().split()]
        found, waiting = [], [self.status()["process"]]
        while waiting:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                below = children(waiting.pop())
                waiting += below
                found += [p for p in below if "cuda_agent_worker" in Path(f"/proc/{p}/cmdline").read_text() and "bwrap" not in os.readlink(f"/proc/{p}/exe")]
        return found

    def workers_of(self, role, serving):
        """Those of a role that have been given a task or candidate, or that have not."""
        folder = {"reference": "task", "candidate": "candidate"}[role]
        has_it = lambda pid: any(Path(f"/proc/{pid}/root/{folder}").iterdir())
        return [p for p in self.workers() if f'"role":"{role}"' in Path(f"/proc/{p}/cmdline").read_text() and has_it(p) == serving]

    def close(self):
        status = self.status()
        if status:
            assert self.command("stop").code == 0
            ended(status["process"])
        shutil.rmtree(self.folder)


def nothing_left(session, workspace):
    """Of an ask: no lock, no scratch files, no process beside those that the session keeps."""
    assert lock_is_free(workspace)
    assert left_in_scratch(workspace) == []
    calm = lambda status: not status["running"] and status["standbys"]["ready"] > 0 and status["standbys"]["starting"] == 0
    # It may start one just now.
    session.until(lambda status: calm(status) and len(session.workers()) == status["standbys"]["ready"] + len(status["references"]))


@pytest.fixture(scope="module")
def session():
    one = Session()
    yield one
    one.close()


@pytest.fixture
def workspace(tmp_path):
    return tiny_workspace(tmp_path / "workspace")


@pytest.fixture
def warm(session, workspace):
    """The session has the tiny task, and a standby."""
    status = session.status()
    if not status or TINY_TASK not in status["references"]:
        assert session.ask(workspace).code == 0
    session.until(lambda status: status["standbys"]["ready"] > 0 and status["references"])
    return session


def test_the_first_ask_starts_it_and_says_so_and_the_next_one_uses_its_workers(session, workspace):
    if session.status():
        session.command("stop")
        session.until(lambda status: status is None)
    first = session.ask(workspace)
    assert first.code == 0 and first.err.count(STARTED) == 1, str(first)
    session.until(lambda status: status["standbys"]["ready"] > 0)
    second = session.ask(workspace)
    assert second.code == 0 and STARTED not in second.err, str(second)
    assert session.status()["references_reused"] == 1
    assert session.status()["workers_started"] <= 2
    nothing_left(session, workspace)


def test_a_warm_answer_has_what_a_cold_one_has(warm, workspace):
    cold = warm.ask(workspace, "--baseline", "eager", "--no-session", command="run").verdict
    hot = warm.ask(workspace, "--baseline", "eager", command="run").verdict
    assert hot.keys() == cold.keys()
    for same in ("outcome", "candidate", "task", "schema", "command", "workspace", "reward"):
        assert {k: v for k, v in hot[same].items() if k != "reason"} == {k: v for k, v in cold[same].items() if k != "reason"} if isinstance(hot[same], dict) else hot[same] == cold[same], same
    assert sorted(p["name"] for p in hot["protections"]) == sorted(p["name"] for p in cold["protections"])
    assert hot["build"]["extension_sha256"] == cold["build"]["extension_sha256"]
    assert hot["correctness"]["passed"] == cold["correctness"]["passed"] == 5
    intervals = [v["speed"]["ratios"][0]["ratio"] for v in (hot, cold)]
    assert max(i["low"] for i in intervals) <= min(i["high"] for i in intervals) * 1.5
    assert hot["seed"] != cold["seed"]


@pytest.mark.parametrize(
    "model_new, code",
    [
        (tiny_mode(8), 6),  # one value is wrong
        (tiny_mode(2), 6),  # aborts
        (tiny_mode(11), 6),  # raises
        (tiny_mode(6), 0),  # prints what a terminal would obey
        (tiny_candidate("torch.relu(x)"), 4),
    ],
)
def test_any_candidate_is_answered_as_without_it_and_the_next_one_is_right(warm, workspace, model_new, code):
    (workspace / "model_new.py").write_text(model_new)
    hot, cold = warm.ask(workspace), warm.ask(workspace, "--no-session")
    assert (hot.code, hot.verdict["outcome"], hot.verdict["fault"]) == (cold.code, cold.verdict["outcome"], cold.verdict["fault"]), f"{hot}\n{cold}"
    assert hot.code == code, str(hot)
    (workspace / "model_new.py").write_text(tiny_candidate())
    assert warm.ask(workspace).code == 0
    nothing_left(warm, workspace)


def test_what_does_not_compile_is_said_without_a_worker(warm, workspace):
    before = warm.status()["answered"]
    (workspace / "kernels" / "tiny_cpu.cpp").write_text("int broken(")
    answer = warm.ask(workspace)
    assert (answer.code, answer.verdict["command"], answer.verdict["reward"]["value"]) == (5, "verify", -1), str(answer)
    assert json.loads((workspace / ".cuda-agent" / "last-verdict.json").read_text())["outcome"] == "compile_error"
    assert warm.status()["answered"] == before


def test_what_the_client_compiled_counts_as_compiled(warm, workspace):
    source = workspace / "kernels" / "tiny_cpu.cpp"
    source.write_text(f"__attribute__((used)) static long stamp = {time.time_ns()};\n" + source.read_text())
    verdict = warm.ask(workspace).verdict
    assert {one["source"] for one in verdict["build"]["objects"] if not one["cached"]} == {"kernels/tiny_cpu.cpp", "cuda_extension"}
    assert 0 < verdict["timings"]["build"] < verdict["timings"]["total"]


def test_an_edited_task_is_another_task(warm, workspace):
    model = workspace / "model.py"
    model.write_text(TINY_MODEL.replace("torch.relu(x)", "torch.relu(x) + 1"))
    assert model.read_text() != TINY_MODEL
    answer = warm.ask(workspace)
    assert (answer.code, answer.verdict["outcome"]) == (6, "wrong"), str(answer)
    model.write_text(TINY_MODEL)
    assert warm.ask(workspace).code == 0


MEMORIES = {
    "a number": "self.calls = getattr(self, 'calls', 0) + 1",
    "a list": "self.__dict__.setdefault('seen', []).append(x.shape)",
    "a tensor of its own": "self.last = x.sum()",
}


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_model_that_remembers_its_calls_is_made_anew(warm, workspace, memory):
    (workspace / "model.py").write_text(TINY_MODEL.replace("return ", MEMORIES[memory] + "\n        return ", 1))
    reused = warm.status()["references_reused"]
    assert [warm.ask(workspace).code for _ in range(2)] == [0, 0]
    assert warm.status()["references_reused"] == reused


def test_a_seed_is_replayed_from_the_constructors_on(warm, workspace):
    (workspace / "model_new.py").write_text(tiny_mode(8))
    first = warm.ask(workspace).verdict
    again = warm.ask(workspace, "--seed", first["seed"]).verdict
    alone = warm.ask(workspace, "--seed", first["seed"], "--no-session").verdict
    assert first["message"] == again["message"] == alone["message"]
    assert again["seed"] == alone["seed"] == first["seed"]


@pytest.mark.parametrize("victim", ["session", "standby", "reference"])
def test_what_is_killed_between_asks_is_replaced(warm, workspace, victim):
    pid = warm.status()["process"]
    if victim == "session":
        os.kill(pid, signal.SIGKILL)
        ended(pid)
    else:
        workers = warm.workers()
        assert len(workers) >= 2
        role = '"reference"' if victim == "reference" else '"candidate"'
        chosen = [p for p in workers if f'"role":{role}' in Path(f"/proc/{p}/cmdline").read_text()]
        for one in chosen:
            os.kill(one, signal.SIGKILL)
            ended(one)
    answer = warm.ask(workspace)
    assert answer.code == 0, str(answer)
    lines = [line for line in answer.err.splitlines() if STARTED in line or WITHOUT in line]
    assert len(lines) == (1 if victim == "session" else 0), answer.err
    nothing_left(warm, workspace)


def test_a_session_that_is_killed_while_it_judges_leaves_the_ask_to_its_client(warm, workspace):
    (workspace / "model_new.py").write_text(tiny_mode(4))  # never ends
    process = warm.start_ask(workspace, "--call-timeout", "5", bufsize=0)
    wait_for_line(process, "checking: trial 1")
    pid, workers = warm.status()["process"], warm.workers()
    os.kill(pid, signal.SIGKILL)
    answer = finish(process, time.monotonic())
    assert answer.code == 8, str(answer)
    assert answer.verdict["outcome"] == "timeout"
    for one in (pid, *workers):
        ended(one)
    assert lock_is_free(workspace) and left_in_scratch(workspace) == []


@pytest.mark.parametrize("role", ["reference", "candidate"])
@pytest.mark.parametrize("stage", ["checking: trial 1", "timing the arms"])
def test_a_worker_that_is_killed_while_it_judges_costs_that_ask_only(warm, workspace, role, stage):
    if stage == "checking: trial 1":
        (workspace / "model_new.py").write_text(tiny_mode(4))  # never ends
    # Rounds that do not settle in the time that is given to them.
    process = start("run", workspace, "--device", "cpu", "--json", "--baseline", "eager", "--patience", "30", env=warm.env, bufsize=0)
    wait_for_line(process, stage)
    serving = warm.workers_of(role, serving=True)
    assert serving
    for one in serving:
        os.kill(one, signal.SIGKILL)
        ended(one)
    answer = finish(process, time.monotonic())
    assert answer.code not in (0, 130), str(answer)
    (workspace / "model_new.py").write_text(tiny_candidate())
    after = warm.ask(workspace)
    assert after.code == 0 and STARTED not in after.err and WITHOUT not in after.err, str(after)
    nothing_left(warm, workspace)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_client_that_leaves_takes_its_ask_with_it(warm, workspace, number):
    (workspace / "model_new.py").write_text(tiny_mode(4))
    process = warm.start_ask(workspace, "--call-timeout", "100", bufsize=0)
    wait_for_line(process, "checking: trial 1")
    began = time.monotonic()
    process.send_signal(number)
    answer = finish(process, began)
    if number == signal.SIGINT:
        assert (answer.code, answer.verdict["outcome"]) == (130, "interrupted"), str(answer)
    interrupted = [verdict for verdict in recorded(workspace) if verdict["outcome"] == "interrupted"]
    assert len(interrupted) == (1 if number == signal.SIGINT else 0)  # not by the session as well
    (workspace / "model_new.py").write_text(tiny_candidate())
    after = warm.ask(workspace)
    assert after.code == 0 and time.monotonic() - began < 60, str(after)
    nothing_left(warm, workspace)


def test_eight_clients_at_once_get_their_own_answers(warm, tmp_path):
    workspaces = [tiny_workspace(tmp_path / f"w{i}", model_new=tiny_mode(8) if i % 3 == 0 else None) for i in range(8)]
    answers = [None] * 8

    def ask(i):
        answers[i] = warm.ask(workspaces[i])

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [a.code for a in answers] == [6 if i % 3 == 0 else 0 for i in range(8)], "\n".join(map(str, answers))
    assert [Path(a.verdict["workspace"]).name for a in answers] == [f"w{i}" for i in range(8)]
    assert any("place" in a.err for a in answers)


def timed(verdict):
    """When its rounds began and ended, on the clock that all processes share."""
    timeline = verdict["timeline"]
    spans = [s for s in timeline["spans"] if s["what"] == "timed rounds"]
    assert len(spans) == 1, timeline
    return timeline["began"] + spans[0]["start"], timeline["began"] + spans[0]["start"] + spans[0]["seconds"]


def test_nothing_is_timed_while_another_ask_is_and_who_came_first_goes_first(warm, tmp_path):
    workspaces = [tiny_workspace(tmp_path / f"w{i}") for i in range(8)]
    answers = [None] * 8

    def ask(i):
        answers[i] = warm.ask(workspaces[i], "--baseline", "eager", command="run")

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert [a.code for a in answers] == [0] * 8, "\n".join(map(str, answers))
    rounds = sorted(timed(a.verdict) for a in answers)
    assert all(before[1] <= after[0] for before, after in zip(rounds, rounds[1:])), rounds
    queued = lambda verdict: next(s for s in verdict["timeline"]["spans"] if s["lane"] == "session")["start"] + verdict["timeline"]["began"]
    in_order = sorted(answers, key=lambda a: queued(a.verdict))
    assert [timed(a.verdict) for a in in_order] == rounds


def test_a_workspace_that_is_held_elsewhere_keeps_nobody_else_waiting(warm, tmp_path):
    endless, held, free = (tiny_workspace(tmp_path / name, model_new=tiny_mode(4) if name == "endless" else None) for name in ("endless", "held", "free"))
    first = warm.start_ask(endless, "--call-timeout", "60", bufsize=0)
    wait_for_line(first, "checking: trial 1")
    waiting = [warm.start_ask(held, bufsize=0) for _ in range(2)]
    for one in waiting:
        wait_for_line(one, "place")
    with (held / ".cuda-agent" / "lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        first.send_signal(signal.SIGINT)
        assert finish(first, 0).code == 130
        for one in waiting:
            wait_for_line(one, "waiting for the workspace")
        assert warm.ask(free).code == 0
        assert [one.poll() for one in waiting] == [None, None]
    for one in waiting:
        answer = finish(one, 0)
        assert answer.code == 0 and answer.verdict["outcome"] == "pass", str(answer)
        assert answer.err.count("place") < 5, answer.err  # not at every try
    nothing_left(warm, held)


def test_a_task_that_is_new_gets_the_spare_worker(warm, workspace):
    ask = lambda: warm.ask(workspace, "--baseline", "compiled", command="run")
    assert ask().code == 0  # from now on it knows that torch.compile is wanted
    warm.until(lambda status: status["spares"] == 1)
    started = warm.status()["workers_started"]
    (workspace / "model.py").write_text(TINY_MODEL + f"\n# {workspace}\n")
    answer = ask()
    assert answer.code == 0 and "compiled" in [arm["name"] for arm in answer.verdict["speed"]["arms"]], str(answer)
    assert warm.status()["workers_started"] == started
    nothing_left(warm, workspace)


def test_a_spare_that_cannot_be_started_is_given_up_until_the_next_ask(warm, workspace):
    ask = lambda: warm.ask(workspace, "--baseline", "compiled", command="run")
    assert ask().code == 0
    status = warm.until(lambda status: status["spares"] == 1 and status["standbys"]["ready"] == 2 and status["standbys"]["starting"] == 0)
    folder = warm.env["CUDA_AGENT_SESSIONS"] / f"{status['key']}.workers"
    folder.rename(folder.with_suffix(".away"))
    folder.touch()
    for one in warm.workers_of("reference", serving=False):
        os.kill(one, signal.SIGKILL)
        ended(one)
    warm.until(lambda status: status["spares"] == 0)
    folder.unlink()
    folder.with_suffix(".away").rename(folder)
    assert ask().code == 0
    warm.until(lambda status: status["spares"] == 1)
    assert warm.command("log").out.count("no standby") == 1
    nothing_left(warm, workspace)


def test_idle_tasks_are_forgotten_above_the_limit_of_memory(workspace):
    one = Session("--idle-memory", "1MB")
    try:
        assert [one.ask(workspace).code for _ in range(2)] == [0, 0]
        status = one.until(lambda status: status["memory"] > 1e6)  # that of the next standby
        assert status["references"] == [] and status["references_reused"] == 0
    finally:
        one.close()


def test_no_session_where_none_is_wanted(workspace):
    one = Session()
    try:
        assert one.ask(workspace, "--no-session").code == 0
        assert one.ask(workspace, CI="true").code == 0
        assert one.status() is None
    finally:
        one.close()


def test_it_leaves_when_it_was_idle(workspace):
    one = Session("--idle", "0.2", "--standbys", "0")
    try:
        one.until(lambda status: status is None)
        log = one.command("log")
        assert log.code == 0 and "idle" in log.out and "has ended" in log.out, str(log)
    finally:
        one.close()


def test_its_folder_is_the_users_alone_and_anything_else_is_refused(warm, workspace, tmp_path):
    folder = warm.env["CUDA_AGENT_SESSIONS"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o755)
    answer = warm.ask(workspace, CUDA_AGENT_SESSIONS=open_to_all)
    assert answer.code == 0 and WITHOUT in answer.err, str(answer)
    assert list(open_to_all.iterdir()) == []


def test_text_for_people_is_printed_as_without_it(warm, workspace):
    answers = [subprocess_text(warm, workspace, *more) for more in ((), ("--no-session",))]
    assert [line.split()[0] for line in answers[0].out.splitlines() if line[:1].isalpha()] == [line.split()[0] for line in answers[1].out.splitlines() if line[:1].isalpha()]


def subprocess_text(warm, workspace, *arguments):
    answer = cuda_agent("verify", workspace, "--device", "cpu", "-q", *arguments, env=warm.env)
    assert answer.code == 0 and answer.err == "", str(answer)
    return answer


def test_a_pipe_is_closed_with_the_answer():
    one = Session()
    try:
        binary_help = cuda_agent("session", "start", env=one.env)  # reads until its pipes are closed
        assert binary_help.code == 0 and binary_help.seconds < 20
        assert one.status() is not None
    finally:
        one.close()
