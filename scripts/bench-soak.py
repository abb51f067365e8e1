#!/usr/bin/env python3
"""Many asks to one session, a third of them wrong, crashing or hanging: does it grow, slow down or leave anything behind?

    scripts/bench-soak.py [--asks N] [--binary FILE] [--python FILE]

Asks `cuda-agent run --baseline eager --device cpu` about one small workspace whose candidate changes from ask to ask.
Prints a Markdown table, a row every tenth of the asks: median seconds of an honest ask, and of the session's process its memory, descriptors,
threads and the processes below it; the last row is to be compared with the first. Exit code 1: an answer was wrong, or
something was left behind.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from harness import tiny_candidate, tiny_mode, tiny_workspace  # noqa: E402

# Exit codes by candidate.
HONEST = (tiny_candidate(), 0)
OTHERS = {"wrong": (tiny_mode(8), 6), "aborts": (tiny_mode(2), 6), "raises": (tiny_mode(11), 6), "hangs": (tiny_mode(4), 8)}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--asks", type=int, default=500)
    parser.add_argument("--binary", type=Path, default=ROOT / "build" / "src" / "cuda-agent")
    parser.add_argument("--python", type=Path, default=ROOT / ".venv" / "bin" / "python")
    return parser.parse_args()


class Soak:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if name != "CI"} | {"CUDA_AGENT_SESSIONS": str(folder / "s")}
        self.workspace = tiny_workspace(folder / "workspace")
        self.problems = []

    def command(self, *words):
        return subprocess.run([str(self.options.binary), *words], env=self.environment, capture_output=True, text=True, timeout=300, check=False)

    def ask(self, name, candidate, expected):
        """Seconds."""
        (self.workspace / "model_new.py").write_text(candidate)
        start = time.monotonic()
        done = self.command("run", str(self.workspace), "--session", "--device", "cpu", "--baseline", "eager", "--call-timeout", "1", "--json", "-q", "--python", str(self.options.python))
        seconds = time.monotonic() - start
        if done.returncode != expected:
            self.problems.append(f"{name}: exit code {done.returncode}, {expected} expected: {done.stdout[:300]} {done.stderr[:300]}")
        return seconds

    def status(self):
        return json.loads(self.command("session", "status", "--json").stdout)["sessions"][0]

    def settled(self):
        """The session's status once nothing is being started; what is below it by then."""
        end = time.monotonic() + 60
        while True:
            status = self.status()
            below = self.below(status["process"])
            if status["standbys"]["starting"] == 0 and not status["running"] and (len(below) == self.count or not self.count):
                break
            if time.monotonic() > end:
                self.problems.append(f"{len(below)} processes below the session, {self.count} at first")
                break
            time.sleep(0.2)
        self.count = len(below)
        return status, below

    count = 0

    @staticmethod
    def below(pid):
        found, waiting = [], [pid]
        while waiting:
            one = waiting.pop()
            for children in Path(f"/proc/{one}/task").glob("*/children"):
                waiting += (new := [int(word) for word in children.read_text().split()])
                found += new
        return found

    def row(self, done, times):
        status, below = self.settled()
        process = Path(f"/proc/{status['process']}")
        fields = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
        anonymous = int(fields["RssAnon"].split()[0]) / 1024
        descriptors = len(list((process / "fd").iterdir()))
        print(f"| {done} | {statistics.median(times):.2f} | {anonymous:.1f} | {descriptors} | {fields['Threads'].strip()} | {len(below)} | {status['memory'] / 1e6:.0f} |", flush=True)

    def run(self):
        print(f"| asks | honest, s | session, MB | descriptors | threads | processes | workers, MB |\n|" + "---:|" * 7)
        names = list(OTHERS)
        times = []
        step = max(self.options.asks // 10, 1)
        for number in range(1, self.options.asks + 1):
            if number % 3 == 0:
                name = names[number // 3 % len(names)]
                self.ask(name, *OTHERS[name])
            else:
                times.append(self.ask("honest", *HONEST))
            # The first twenty make what is made once.
            if number == 20 or number % step == 0:
                self.row(number, times)
                times = []
        status, below = self.settled()
        self.command("session", "stop")
        end = time.monotonic() + 30
        while left := [pid for pid in (status["process"], *below) if Path(f"/proc/{pid}").exists()]:
            if time.monotonic() > end:
                self.problems.append(f"still there after the session was stopped: {left}")
                break
            time.sleep(0.1)
        for problem in self.problems:
            print(problem, file=sys.stderr)
        return 1 if self.problems else 0


def main():
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        return Soak(arguments(), Path(folder)).run()


if __name__ == "__main__":
    sys.exit(main())
