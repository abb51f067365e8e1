"""`watch`: every save is judged, the newest one wins, and Ctrl-C leaves nothing behind."""

import json
import queue
import signal
import threading

import pytest

from harness import TINY_KERNEL, finish, nothing_left, recorded, start, tiny_candidate, tiny_mode, tiny_workspace

WAITING = "waiting for the next save"


class Watching:
    """A watch of a workspace, whose lines of standard output and error are read as they come."""

    def __init__(self, workspace, *arguments):
        self.workspace = workspace
        self.process = start("watch", workspace, "--device", "cpu", "--baseline", "eager", *arguments)
        self.out, self.err = queue.Queue(), queue.Queue()
        for stream, lines in ((self.process.stdout, self.out), (self.process.stderr, self.err)):
            threading.Thread(target=self._read, args=(stream, lines), daemon=True).start()

    @staticmethod
    def _read(stream, lines):
        for line in stream:
            lines.put(line.decode())
        lines.put(None)

    def until(self, text, timeout=120):
        """Lines of standard error up to one that has the text."""
        seen = []
        while True:
            line = self.err.get(timeout=timeout)
            assert line is not None, "".join(seen)
            seen.append(line)
            if text in line:
                return seen

    def verdict(self, timeout=120):
        line = self.out.get(timeout=timeout)
        assert line is not None, "it has ended"
        return json.loads(line)

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@pytest.fixture
def watching(tmp_path):
    one = Watching(tiny_workspace(tmp_path / "workspace"), "--json")
    yield one
    if one.process.poll() is None:
        one.stop()


def test_every_save_is_judged_until_ctrl_c(watching):
    assert watching.verdict()["outcome"] == "pass"
    watching.until(WAITING)
    kernel = watching.workspace / "kernels" / "tiny_cpu.cpp"
    kernel.write_text("int broken(")
    assert watching.verdict()["outcome"] == "compile_error"
    assert any("saved: kernels/tiny_cpu.cpp" in line for line in watching.until(WAITING))
    # As editors do it: another file takes the name.
    (kernel.parent / ".new").write_text(TINY_KERNEL)
    (kernel.parent / ".new").rename(kernel)
    assert watching.verdict()["outcome"] == "pass"
    watching.until(WAITING)
    assert watching.stop() == 130
    assert watching.out.get(timeout=10) is None
    nothing_left(watching.workspace)


def test_the_newest_save_wins(watching):
    assert watching.verdict()["outcome"] == "pass"
    watching.until(WAITING)
    candidate = watching.workspace / "model_new.py"
    candidate.write_text(tiny_mode(4))  # never ends
    watching.until("checking: trial 1")
    candidate.write_text(tiny_mode(8))
    assert watching.verdict()["outcome"] == "wrong", "the stale judgement must not be told"
    watching.until(WAITING)
    candidate.write_text(tiny_candidate())
    assert watching.verdict()["outcome"] == "pass"
    assert watching.stop() == 130
    assert [verdict["outcome"] for verdict in recorded(watching.workspace)] == ["pass", "wrong", "pass"]
    nothing_left(watching.workspace)


def test_ctrl_c_while_it_judges(watching):
    assert watching.verdict()["outcome"] == "pass"
    watching.until(WAITING)
    (watching.workspace / "model_new.py").write_text(tiny_mode(4))
    watching.until("checking: trial 1")
    assert watching.stop(signal.SIGTERM) == 130
    nothing_left(watching.workspace)


def test_a_folder_that_is_no_workspace_is_an_error(tmp_path):
    answer = finish(start("watch", tmp_path / "gone", "--json"), 0)
    assert answer.code == 3 and json.loads(answer.out)["outcome"] == "environment_error", str(answer)


def test_a_mistake_in_the_line_is_said_before_anything_is_judged(tmp_path):
    answer = finish(start("watch", tmp_path, "--trails", "3"), 0)
    assert answer.code == 2 and "--trials" in answer.err, str(answer)
