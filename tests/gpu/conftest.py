"""Tests that need a GPU. Run by scripts/gpu-test.sh, never by CTest. They share tests/e2e/harness.py."""

import json
import os
import tempfile
from pathlib import Path

import pytest
from gpu_harness import TABLE, add_row  # first: it finds harness

import harness


def pytest_configure():
    # Before the processes of pytest -n are started: they write there too.
    if TABLE not in os.environ:
        os.environ[TABLE] = str(Path(tempfile.mkdtemp()) / "table.jsonl")
    if not harness.BINARY.is_file():
        pytest.exit(f"no binary at {harness.BINARY}: build it, or set CUDA_AGENT_BINARY", returncode=3)


@pytest.fixture
def table():
    return add_row


def pytest_terminal_summary(terminalreporter):
    path = Path(os.environ[TABLE])
    if hasattr(terminalreporter.config, "workerinput") or not path.is_file():
        return
    terminalreporter.section("measured")
    for row in sorted(map(json.loads, path.read_text().splitlines()), key=lambda row: row["name"]):
        values = "  ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items() if key != "name")
        terminalreporter.write_line(f"{row['name']:<34} {values}")
