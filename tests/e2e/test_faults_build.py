"""Kernels that do not build: exit code 5, the candidate's fault, file and line (or the symbol) in the message."""

import shutil

import pytest

import harness
from harness import NOTHING_BINDING, TINY_BINDING, TINY_KERNEL, cuda_agent, expect, judged, nothing_left, passes
from marks import needs_nvcc


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return harness.tiny_workspace(tmp_path_factory.mktemp("faults") / "workspace")


@pytest.fixture(autouse=True)
def whole(workspace):
    """Every test starts from the right kernels."""
    shutil.rmtree(workspace / "kernels")
    (workspace / "kernels").mkdir()
    (workspace / "kernels" / "tiny_cpu.cpp").write_text(TINY_KERNEL)
    (workspace / "kernels" / "tiny_binding.cpp").write_text(TINY_BINDING)


@pytest.mark.parametrize("command", ["compile", "verify"])
def test_syntax_error(workspace, command):
    broken = TINY_KERNEL.replace("const count = rows * columns;", "const count = rows * ;")
    line = next(n for n, text in enumerate(broken.splitlines(), 1) if "rows * ;" in text)
    (workspace / "kernels" / "tiny_cpu.cpp").write_text(broken)
    answer = judged(command, workspace)
    verdict = expect(answer, 5, "compile_error", rf"kernels/tiny_cpu\.cpp:{line}:\d+: .*expected")
    diagnostics = [d for o in verdict["build"]["objects"] for d in o["diagnostics"] if d["severity"] == "error"]
    assert (diagnostics[0]["file"], diagnostics[0]["line"]) == ("kernels/tiny_cpu.cpp", line)
    assert diagnostics[0]["column"] > 0
    nothing_left(workspace)


def test_undefined_symbol(workspace):
    (workspace / "kernels" / "tiny_cpu.cpp").unlink()
    answer = judged("compile", workspace)
    expect(answer, 5, "compile_error", "tiny_run", r"kernels/tiny_binding\.cpp")
    nothing_left(workspace)


def test_no_binding_file(workspace):
    (workspace / "kernels" / "tiny_binding.cpp").unlink()
    answer = judged("compile", workspace)
    expect(answer, 5, "compile_error", "missing binding", "REGISTER_BINDING", r"kernels/tiny_cpu\.cpp")
    nothing_left(workspace)


def test_binding_that_registers_nothing(workspace):
    """It builds; the first call of what is not there says so."""
    (workspace / "kernels" / "tiny_binding.cpp").write_text(NOTHING_BINDING)
    answer = judged("verify", workspace)
    expect(answer, 6, "crash", r"AttributeError at model_new\.py:\d+", "cuda_extension.* has no attribute 'tiny'")
    nothing_left(workspace)


def test_binding_that_throws_when_it_is_loaded(workspace):
    text = NOTHING_BINDING.replace('m.def("nothing", [] { return 0; });', 'throw std::runtime_error("no luck");')
    text = text.replace("(pybind11::module& m)", "(pybind11::module&)")
    (workspace / "kernels" / "tiny_binding.cpp").write_text(text)
    answer = judged("verify", workspace)
    expect(answer, 6, "crash", r"model_new\.py:\d+", r"REGISTER_BINDING\(nothing\): no luck")
    nothing_left(workspace)


def test_nothing_to_build(workspace):
    for file in (workspace / "kernels").iterdir():
        file.unlink()
    expect(judged("compile", workspace), 5, "compile_error", "kernels/")
    shutil.rmtree(workspace / "kernels")
    expect(judged("compile", workspace), 5, "compile_error", "kernels/ is missing")
    (workspace / "kernels").mkdir()
    nothing_left(workspace)


@needs_nvcc
def test_syntax_error_in_cuda(workspace):
    (workspace / "kernels" / "tiny.cu").write_text("__global__ void twice(float* x) {\n  x[threadIdx.x] *= 2\n}\n")
    answer = cuda_agent("compile", workspace, "--arch", "90a", "--json")
    expect(answer, 5, "compile_error", r"kernels/tiny\.cu:[23](:\d+)?: ")
    nothing_left(workspace)


def test_after_all_of_these_a_good_candidate_passes(workspace):
    passes(workspace)


def test_message_on_a_terminal_shows_the_line(workspace):
    (workspace / "kernels" / "tiny_cpu.cpp").write_text("int broken() { return nowhere; }\n")
    answer = cuda_agent("compile", workspace, "--device", "cpu")
    assert answer.code == 5, str(answer)
    assert "kernels/tiny_cpu.cpp:1:" in answer.out
    assert "int broken() { return nowhere; }" in answer.out
