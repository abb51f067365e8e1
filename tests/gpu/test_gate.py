"""The gate of a timed call holds, and forging its counters gains nothing: 100 tries of each kind (probe/)."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from gpu_harness import TABLE, add_row, gpu_lock
from harness import BINARY

PROBE = BINARY.resolve().parent.parent / "tests" / "gpu" / "probe" / "gate_probe"
TRIES = 100

pytestmark = pytest.mark.xdist_group("gate")


@pytest.fixture(scope="module")
def rows():
    """One run of the probe for all tests of this file, whichever process of pytest -n they run in."""
    assert PROBE.is_file(), f"{PROBE} is not built: ninja -C build gate_probe"
    kept = Path(os.environ[TABLE]).with_suffix(".gate")
    with gpu_lock():
        if not kept.is_file():
            done = subprocess.run([PROBE, "--tries", str(TRIES)], capture_output=True, text=True, timeout=280, check=False)
            assert done.returncode == 0, done.stderr + done.stdout
            kept.write_text(done.stdout)
            show(done.stdout)
    return {row["scenario"]: row for row in map(json.loads, kept.read_text().splitlines())}


def show(lines):
    for row in map(json.loads, lines.splitlines()):
        times = {f"{key} {which}": row[key][which] for key in ("span", "tail", "charged", "honest") for which in ("p10", "median", "p90") if key in row}
        add_row(f"gate: {row['scenario']}", **{k: v for k, v in row.items() if not isinstance(v, dict) and k != "scenario"}, **times)


def test_null_is_short_and_steady(rows):
    span = rows["null"]["span"]
    assert rows["null"]["counted"] >= TRIES - 2  # the first behind a closed gate may block
    assert span["median"] < 20 and span["p90"] - span["p10"] < 5


@pytest.mark.parametrize("kind", ["nonblocking", "priority", "per_thread", "graph", "second_context_sealed", "child_process_sealed"])
def test_nothing_computes_past_the_closed_gate(kind, rows):
    assert rows[kind]["tries"] == TRIES
    assert rows[kind]["escaped"] == 0


def test_past_a_gate_of_one_thread_it_does(rows):
    assert rows["one_thread_gate"]["escaped"] >= 0.95 * TRIES


def test_a_second_context_is_what_the_seal_is_for(rows):
    assert rows["second_context"]["escaped"] == TRIES


@pytest.mark.parametrize("kind", ["done1_early", "done2_early", "done_by_kernel", "done_guessed", "armed_early", "beat_by_kernel", "beat_by_thread"])
def test_a_forged_counter_is_caught_or_gains_nothing(kind, rows):
    row = rows[kind]
    assert row["caught"] + row["refused"] + row["counted"] == TRIES
    if row["counted"]:
        free = 2 + 0.01 * rows["null_written"]["tail"]["median"]
        steps = 0.3  # µs by which the median of the same work moves
        assert row["charged"]["median"] > row["honest"]["median"] - free - steps


def test_work_begun_before_go_is_wrong(rows):
    row = rows["no_gate"]
    assert row["caught"] + row["wrong"] + row["refused"] == TRIES
