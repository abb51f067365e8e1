"""Where bubblewrap does not work: landlock confines workers and compilers."""

import ctypes

import pytest

from harness import NO_POLICY, expect, judged, nothing_left, tiny_candidate, tiny_workspace

LANDLOCK = {"CUDA_AGENT_SANDBOX": "landlock"}
VERSION = ctypes.CDLL(None).syscall(444, None, 0, 1)

pytestmark = pytest.mark.skipif(VERSION < 1, reason="this kernel has no landlock")


def protections(verdict):
    return {one["name"]: one["in_force"] for one in verdict["protections"]}


def test_an_honest_candidate_is_judged_and_the_verdict_says_how(tmp_path):
    verdict = expect(judged("run", tiny_workspace(tmp_path / "w"), env=LANDLOCK), 0, "pass", fault="none")
    held = protections(verdict)
    assert held["file system"] and not held["namespaces"]
    assert held["network"] == (VERSION >= 4)
    assert verdict["reward"]["value"] is not None
    assert "weaker sandbox" in verdict["reward"]["reason"]
    assert {ratio["baseline"] for ratio in verdict["speed"]["ratios"]} == {"eager", "compiled"}


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        ("open(SECRET)", "PermissionError"),
        ("open(TASK)", "PermissionError"),
        ("open('/tmp/cuda-agent-exploit-landlock', 'w')", "PermissionError"),
        ("open('/dev/shm/cuda-agent-exploit-landlock', 'w')", "PermissionError"),
        ("open(f'/proc/{os.getppid()}/environ').read()", "PermissionError"),
        ("os.kill(os.getppid(), 0)", "PermissionError"),
        ("__import__('socket').socket()", "PermissionError"),
    ],
    ids=["a file of the user's", "the task", "/tmp", "/dev/shm", "the judge's environment", "signals", "sockets"],
)
def test_what_is_out_of_reach(attempt, words, tmp_path):
    if "kill" in attempt and VERSION < 6:
        pytest.skip("signals are confined from version 6 on")
    made = tiny_workspace(tmp_path / "w")
    (tmp_path / "secret").write_text("words")
    paths = f"TASK = {str(made / 'model.py')!r}\nSECRET = {str(tmp_path / 'secret')!r}\n"
    text = f"import os\n\n{paths}{attempt}\n" + tiny_candidate()
    (made / "model_new.py").write_text(text)
    expect(judged("verify", made, *NO_POLICY, env=LANDLOCK), 6, "crash", words)
    nothing_left(made)


def test_the_compiler_sees_no_more_than_it_needs(tmp_path):
    made = tiny_workspace(tmp_path / "w")
    (tmp_path / "secret.h").write_text("#define SECRET 1\n")
    kernel = made / "kernels" / "tiny_cpu.cpp"
    kernel.write_text(f'#include "{tmp_path / "secret.h"}"\n' + kernel.read_text())
    expect(judged("compile", made, env=LANDLOCK), 5, "compile_error", "secret.h.*Permission denied|Permission denied.*secret.h")


def test_strict_asks_for_more(tmp_path):
    answer = judged("verify", tiny_workspace(tmp_path / "w"), "--require-sandbox", "strict", env=LANDLOCK)
    expect(answer, 3, "environment_error", "namespaces is not in force", fault="environment")


def test_what_rests_on_the_system_call_filter_is_not_claimed_without_it(tmp_path):
    made = tiny_workspace(tmp_path / "w")
    verdict = expect(judged("verify", made, "--trials", "1", "--without", "seal", env=LANDLOCK), 0, "pass", fault="none")
    held = protections(verdict)
    assert held["file system"] and held["capabilities"]
    assert not (held["system-call filter"] or held["network"] or held["other processes"])
