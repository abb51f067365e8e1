"""scripts/setup.sh where it cannot go on: what it says and with which code."""

import shutil
import subprocess
import sys

import pytest

from harness import REPOSITORY

TOOLS = "bash basename cat cut dirname env head mkdir mktemp rm sed sh sha256sum tail".split()


@pytest.fixture
def tree(tmp_path):
    """A source tree in a path with a space, and a PATH of its own: no compilers, no sudo, an ordinary user."""
    root = tmp_path / "a tree"
    shutil.copytree(REPOSITORY / "scripts", root / "scripts")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in TOOLS:
        (tools / name).symlink_to(shutil.which(name))
    (tools / "python3").symlink_to(sys.executable)
    for name, text in {"id": "echo 1000", "dpkg-query": "exit 1"}.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    return root, tools


def setup(tree, *arguments):
    root, tools = tree
    return subprocess.run(
        [root / "scripts" / "setup.sh", *arguments],
        env={"PATH": str(tools), "HOME": str(root)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_rights_it_prints_the_one_command(tree):
    done = setup(tree)
    assert done.returncode == 3, done.stderr
    commands = [line for line in done.stderr.splitlines() if "apt-get install" in line]
    assert len(commands) == 1
    assert "g++" in commands[0] and "bubblewrap" in commands[0]
    assert done.stdout == ""


def test_interpreter_without_torch_is_refused(tree):
    root, tools = tree
    (tools / "snake").write_text("#!/bin/sh\nexit 1\n")
    (tools / "snake").chmod(0o755)
    done = setup(tree, "--python", str(tools / "snake"))
    assert done.returncode == 3
    assert "has no torch >= 2.6" in done.stderr


def test_missing_interpreter_is_named(tree):
    done = setup(tree, "--python", "/nowhere/python")
    assert done.returncode == 2
    assert "/nowhere/python" in done.stderr


@pytest.mark.parametrize("arguments", [["--fast"], ["--preset", "fastest"], ["--python"]])
def test_wrong_usage(tree, arguments):
    done = setup(tree, *arguments)
    assert done.returncode == 2
    assert arguments[-1] in done.stderr
