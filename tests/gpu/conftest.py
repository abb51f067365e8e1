"""Tests that need a GPU. Run by scripts/gpu-test.sh, never by CTest. They share tests/e2e/harness.py."""

import json
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

import harness  # noqa: E402

ROWS = []


def pytest_configure():
    if not harness.BINARY.is_file():
        pytest.exit(f"no binary at {harness.BINARY}: build it, or set CUDA_AGENT_BINARY", returncode=3)


@pytest.fixture
def table():
    """table(name, **values): a row of the table that ends the run, and of the file $CUDA_AGENT_GPU_TABLE."""

    def add(name, **values):
        row = {"name": name, **values}
        ROWS.append(row)
        if path := os.environ.get("CUDA_AGENT_GPU_TABLE"):
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    return add


def pytest_terminal_summary(terminalreporter):
    if not ROWS:
        return
    terminalreporter.section("measured")
    for row in ROWS:
        values = "  ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items() if key != "name")
        terminalreporter.write_line(f"{row['name']:<44} {values}")
