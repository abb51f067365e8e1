"""cmake --install gives a tree that runs from anywhere, also after it was moved."""

import shutil
import subprocess
from pathlib import Path

import pytest

import harness


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("install")
    build = harness.BINARY.resolve().parent.parent
    if not (build / "cmake_install.cmake").is_file():
        pytest.fail(f"{build} is no CMake build folder: CUDA_AGENT_BINARY must be the one that was built there")
    subprocess.run(
        ["cmake", "--install", str(build), "--prefix", str(folder / "first")], check=True, capture_output=True
    )
    (folder / "first").rename(folder / "moved here")
    return folder / "moved here"


def run(installed, *arguments, cwd):
    return subprocess.run(
        [str(installed / "bin" / "cuda-agent"), *map(str, arguments)],
        cwd=cwd,
        env=harness.environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_no_links_out_of_the_tree(installed):
    for path in installed.rglob("*"):
        if path.is_symlink():
            assert path.resolve().is_relative_to(installed.resolve()), path


def test_init_and_verify(installed, tmp_path):
    done = run(installed, "init", tmp_path / "mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "mine" / "SKILL.md").read_text() == (harness.REPOSITORY / "SKILL.md").read_text()
    done = run(installed, "verify", "--device", "cpu", cwd=tmp_path / "mine")
    assert done.returncode == 0, done.stdout + done.stderr


def test_binary_links_neither_torch_nor_python(installed):
    ldd = shutil.which("ldd")
    assert ldd
    libraries = subprocess.run([ldd, installed / "bin" / "cuda-agent"], capture_output=True, text=True, check=True)
    assert "torch" not in libraries.stdout
    assert "python" not in libraries.stdout
    assert "not found" not in libraries.stdout


def test_tree_names_no_place_of_the_build(installed):
    text_files = [path for path in installed.rglob("*") if path.suffix in {".py", ".sh", ".md", ".json", ".cpp", ".h"}]
    assert text_files
    for path in text_files:
        assert str(harness.REPOSITORY) not in Path(path).read_text(), path
