"""The example workspace, judged on the GPU from end to end."""

import shutil

import pytest

from gpu_harness import judged, times
from harness import CACHE, copy_example, cuda_agent


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """The example, once verified: headers, the worker module and what the system keeps of torch's files are there."""
    folder = copy_example(tmp_path_factory.mktemp("example") / "workspace")
    answer = judged("verify", folder)
    assert answer.code == 0, str(answer)
    return folder


@pytest.fixture(scope="module")
def no_objects(workspace, tmp_path_factory):
    """A cache with everything in it but what was made of a candidate."""
    cache = tmp_path_factory.mktemp("cache") / "cache"
    shutil.copytree(CACHE, cache, ignore=shutil.ignore_patterns("objects", "extensions", "torch-compile"))
    return {"CUDA_AGENT_CACHE": str(cache)}


def note(table, name, answer):
    assert answer.code == 0, str(answer)
    table(f"example: {name}", seconds=answer.seconds, **{key: round(value, 2) for key, value in answer.verdict["timings"].items()})


def test_compiles(workspace, no_objects, table):
    note(table, "compile, no objects", judged("compile", workspace, env=no_objects))
    note(table, "compile, nothing changed", judged("compile", workspace, env=no_objects))
    kernel = workspace / "kernels" / "axpby.cu"
    kernel.write_text(kernel.read_text().replace("kThreads = 256", "kThreads = 128"))
    edited = judged("compile", workspace, env=no_objects)
    note(table, "compile, one .cu edited", edited)
    assert [one["source"] for one in edited.verdict["build"]["objects"] if not one["cached"]] == ["kernels/axpby.cu", "cuda_extension"]


def test_verifies(workspace, table):
    assert judged("compile", workspace).code == 0
    answer = judged("verify", workspace)
    note(table, "verify", answer)
    assert answer.verdict["correctness"]["passed"] == 5


def test_runs_cold_twice(workspace, table):
    for turn in ("first", "second"):
        answer = judged("run", workspace)
        note(table, f"run, {turn}", answer)
    verdict = answer.verdict
    assert verdict["speed"]["mode"] == "gated"
    assert verdict["correctness"]["passed"] == 5
    assert verdict["environment"]["device.uuid"].startswith(("GPU-", "MIG-"))
    assert {ratio["baseline"] for ratio in verdict["speed"]["ratios"]} == {"eager", "compiled"}
    table("example: times", **times(verdict), null=verdict["speed"]["arms"][0]["null"], rounds=verdict["speed"]["rounds"])
    for ratio in verdict["speed"]["ratios"]:
        table(f"example: versus {ratio['baseline']}", **ratio["ratio"])


def test_is_the_device_that_auto_means(workspace):
    answer = cuda_agent("verify", workspace, "--json")
    assert answer.code == 0, str(answer)
    assert answer.verdict["environment"]["device.kind"] == "cuda"
