#!/usr/bin/env python3
"""How far the judge is off when there is nothing to find: every task of tests/tasks with its own Model as candidate.

    scripts/bench-same.py [--binary FILE] [--device cpu|cuda] [--tasks SUBSTRING] [--repeat N]

Prints a Markdown table of the ratios to eager with their intervals, then how many intervals contain 1 and the median of
|ratio - 1|. Run it on an idle machine. Needs no package beyond the standard library.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))

from harness import NO_POLICY, TASKS, reference_as_candidate  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", type=Path, default=ROOT / "build" / "src" / "cuda-agent")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--tasks", default="", help="only the tasks whose name contains this")
    parser.add_argument("--repeat", type=int, default=1, help="asks a task, each in new processes [default: 1]")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one ask [default: 300]")
    return parser.parse_args()


def ask(binary, device, workspace, timeout):
    """The verdict of one `run`, or a sentence about why there is none."""
    command = [binary, "run", workspace, "--device", device, "--baseline", "eager", "--json", "--quiet"]
    command += [*NO_POLICY, "--timeout", str(timeout)]
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout + 60, check=False)
    except subprocess.TimeoutExpired:
        return None, f"no answer within {timeout + 60:g} s"
    try:
        verdict = json.loads(done.stdout)
    except json.JSONDecodeError:
        return None, f"exit code {done.returncode}: {done.stderr.strip()[-200:]}"
    return (verdict, "") if verdict["speed"] else (None, f"{verdict['outcome']}: {verdict['message'][:200]}")


def row(name, verdict):
    speed = verdict["speed"]
    ratio = speed["ratios"][0]["ratio"]
    times = {arm["name"]: arm for arm in speed["arms"]}
    print(
        f"| {name} | {speed['rounds']} x {speed['calls_per_round']} | {times['eager']['time']['estimate']:.1f} "
        f"| {times['candidate']['time']['estimate']:.1f} | {times['eager']['null']:.1f} "
        f"| {ratio['estimate']:.4f} | {ratio['low']:.4f} to {ratio['high']:.4f} |",
        flush=True,
    )
    return ratio


def main():
    options = arguments()
    names = sorted(path.parent.name for path in TASKS.glob("*/model.py") if options.tasks in path.parent.name)
    if not names:
        sys.exit(f"no task has '{options.tasks}' in its name; they are the folders of {TASKS}")
    if not options.binary.is_file():
        sys.exit(f"no binary at {options.binary}: scripts/setup.sh builds it, or say --binary")
    print("| task | rounds x calls | eager, us | candidate, us | null, us | ratio | interval |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    ratios, failed = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            workspace = reference_as_candidate(TASKS / name / "model.py", Path(folder) / name)
            for _ in range(options.repeat):
                verdict, problem = ask(options.binary, options.device, workspace, options.timeout)
                if verdict is None:
                    failed.append(f"{name}: {problem}")
                    continue
                ratios.append(row(name, verdict))
    for line in failed:
        print(f"no ratio for {line}", file=sys.stderr)
    if ratios:
        holding = sum(ratio["low"] <= 1 <= ratio["high"] for ratio in ratios)
        off = statistics.median(abs(ratio["estimate"] - 1) for ratio in ratios)
        print(f"\n{holding} of {len(ratios)} intervals contain 1; the median of |ratio - 1| is {100 * off:.2f} %")
    return 1 if failed or not ratios else 0


if __name__ == "__main__":
    sys.exit(main())
