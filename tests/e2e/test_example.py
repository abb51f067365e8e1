"""The example workspace, judged on the CPU from end to end."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import BINARY, CACHE, copy_example, cuda_agent, environment, judged


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    return judged("run", copy_example(tmp_path_factory.mktemp("example") / "workspace"))


def test_passes_with_a_reward(answer):
    assert answer.code == 0, str(answer)
    assert answer.verdict["outcome"] == "pass"
    assert answer.verdict["fault"] == "none"
    assert answer.verdict["reward"]["value"] >= 1
    assert answer.verdict["reward"]["final"] is False


def test_verdict_validates_against_its_schema(answer, check_schema):
    check_schema(answer.verdict)


def test_checks_five_inputs_and_every_timed_call(answer):
    correctness = answer.verdict["correctness"]
    assert (correctness["trials"], correctness["passed"]) == (5, 5)
    assert correctness["timed_compared"] > 0
    assert correctness["seeds"]


def test_gives_ratios_with_intervals_for_both_baselines(answer):
    ratios = {ratio["baseline"]: ratio["ratio"] for ratio in answer.verdict["speed"]["ratios"]}
    assert set(ratios) == {"eager", "compiled"}
    for ratio in ratios.values():
        assert 0 < ratio["low"] <= ratio["estimate"] <= ratio["high"]


def test_says_where_and_under_what_protection_it_ran(answer):
    verdict = answer.verdict
    assert verdict["protections"]
    assert verdict["environment"]


def test_every_run_goes_to_the_history(example):
    for lines in (1, 2):
        assert judged("verify", example).code == 0
        assert len((example / ".cuda-agent" / "history.jsonl").read_text().splitlines()) == lines


def test_runs_with_stdin_closed(example):
    argv = ["sh", "-c", 'exec "$@" <&-', "sh"]
    command = [str(BINARY), "run", str(example), "--device", "cpu", "--json"]
    done = subprocess.run(argv + command, env=environment(), capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_runs_with_a_home_that_cannot_be_written(example):
    # Not even by root. The cache is kept with the workspace then; what others of these tests have compiled lies there already.
    home = Path("/dev/null/home")
    cache = example / ".cuda-agent" / "cache"
    shutil.copytree(CACHE, cache, copy_function=os.link, symlinks=True)
    before = set(cache.rglob("*"))
    (example / "kernels" / "axpby_cpu.cpp").open("a").write("// another one\n")
    answer = judged("run", example, "--baseline", "eager", env={"HOME": home, "CUDA_AGENT_CACHE": None, "XDG_CACHE_HOME": None})
    assert answer.code == 0, str(answer)
    assert {"manifests", "objects"} <= {path.relative_to(cache).parts[0] for path in set(cache.rglob("*")) - before}


def test_text_fits_one_screen(example):
    answer = cuda_agent("run", example, "--device", "cpu")
    assert answer.code == 0, str(answer)
    assert len(answer.out.splitlines()) <= 50
    assert "\x1b" not in answer.out


def test_keeps_what_inductor_found_out_about_the_compiler(answer, example):
    """What is known is not asked again; what is missing is."""
    assert answer.code == 0, str(answer)
    folder = CACHE / "torch-compile" / "inductor" / "vector-instructions"
    known = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert known
    forgotten = sorted(known)[0]
    (folder / forgotten).unlink()
    assert judged("profile", example, "--baseline", "compiled").code == 0
    now = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert now.keys() == known.keys()
    assert [name for name in now if now[name] != known[name]] == [forgotten]
