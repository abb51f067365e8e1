"""bash utils/compile.sh, python3 -m utils.verification and -m utils.profiling: same lines, exit codes of the binary."""

import os
import re
import subprocess

import harness


def in_workspace(workspace, *command):
    environment = harness.environment(CUDA_AGENT=harness.BINARY)
    done = subprocess.run(
        command, cwd=workspace, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout, done.stderr


def python_module(workspace, name, *arguments):
    python = os.environ.get("CUDA_AGENT_PYTHON") or "python3"
    return in_workspace(workspace, python, "-m", name, "--device", "cpu", *arguments)


def test_compile_leaves_an_extension(example):
    code, out, err = in_workspace(example, "bash", "utils/compile.sh", "--device", "cpu")
    assert code == 0, out + err
    assert "Compile success: cuda_extension.so" in out.splitlines()
    assert re.fullmatch(r"\[TIME\] Compilation took \d+\.\d\ds", out.splitlines()[-1])
    assert (example / "cuda_extension.so").stat().st_size > 0


def test_compile_error_names_the_place_and_keeps_the_code(example):
    (example / "kernels" / "axpby_cpu.cpp").write_text("int broken() { return 1 }\n")
    code, out, err = in_workspace(example, "bash", "utils/compile.sh", "--device", "cpu")
    assert code == 5, out + err
    assert "Compilation failed." in out
    assert re.search(r"kernels/axpby_cpu\.cpp:1:\d+: error: ", out)
    assert not (example / "cuda_extension.so").exists()


def test_verification_counts_its_checks(example):
    code, out, err = python_module(example, "utils.verification")
    assert code == 0, out + err
    assert out.splitlines() == [f"[PASS] check {check}/5" for check in range(1, 6)] + ["[PASS] verify success"]


def test_verification_says_what_is_wrong(example):
    kernel = example / "kernels" / "axpby_cpu.cpp"
    kernel.write_text(kernel.read_text().replace("+ b[i]", "- b[i]"))
    code, out, err = python_module(example, "utils.verification")
    assert code == 6, out + err
    assert "[FAIL] check 1/5" in out
    assert "[PASS] verify success" not in out


def test_profiling_prints_the_three_times(example):
    code, out, err = python_module(example, "utils.profiling")
    assert code == 0, out + err
    assert re.fullmatch(
        r"Torch Baseline: \d+\.\d{3}us, Torch Compile: \d+\.\d{3}us, CUDA Extension: \d+\.\d{3}us", out.splitlines()[0]
    )


def test_profiling_says_what_was_not_measured(example):
    code, out, err = python_module(example, "utils.profiling", "--baseline", "eager")
    assert code == 0, out + err
    assert "Torch Compile: not measured" in out.splitlines()[0]
    assert out.splitlines()[1].startswith("Torch Compile was not measured: ")


def test_missing_binary_is_explained(example):
    environment = harness.environment(CUDA_AGENT=None, PATH="/usr/bin:/bin")
    done = subprocess.run(
        ["python3", "-m", "utils.verification"],
        cwd=example,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert "cuda-agent was not found" in done.stderr
