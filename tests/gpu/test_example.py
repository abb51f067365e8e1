"""The example workspace, judged on the GPU from end to end."""

import pytest

from gpu_harness import judged, times
from harness import copy_example


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return copy_example(tmp_path_factory.mktemp("example") / "workspace")


def test_compiles_verifies_and_runs(workspace, table):
    for command, limit in (("compile", 30), ("compile", 10), ("verify", 20), ("run", 60), ("run", 60)):
        answer = judged(command, workspace)
        assert answer.code == 0, str(answer)
        table(f"example: {command}", seconds=answer.seconds, **{k: round(v, 2) for k, v in answer.verdict["timings"].items()})
        assert answer.seconds < limit
    verdict = answer.verdict
    assert verdict["speed"]["mode"] == "gated"
    assert verdict["correctness"]["passed"] == 5
    assert verdict["environment"]["device.uuid"].startswith("GPU-")
    assert {ratio["baseline"] for ratio in verdict["speed"]["ratios"]} == {"eager", "compiled"}
    table("example: times", **times(verdict), null=verdict["speed"]["arms"][0]["null"], rounds=verdict["speed"]["rounds"])
    for ratio in verdict["speed"]["ratios"]:
        table(f"example: versus {ratio['baseline']}", **ratio["ratio"])


def test_is_the_device_that_auto_means(workspace):
    from harness import cuda_agent

    answer = cuda_agent("verify", workspace, "--json")
    assert answer.code == 0, str(answer)
    assert answer.verdict["environment"]["device.kind"] == "cuda"
