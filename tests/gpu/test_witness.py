"""What is seen of a candidate's kernels, and how much of the GPU's memory it may keep."""

import shutil

import pytest

from gpu_harness import judged, relu_workspace
from harness import REPOSITORY

TASK = ("torch.relu(x)", "x.clone()")


def run(workspace, *arguments):
    return judged("run", workspace, "--baseline", "eager", "--trace-kernels", "yes", *arguments)


def test_own_kernels_and_their_share_are_named(tmp_path, table):
    answer = run(relu_workspace(tmp_path / "own"))
    assert answer.code == 0, str(answer)
    witness = answer.verdict["witness"]
    table("witness: one kernel", trace=answer.verdict["timings"]["trace"], seconds=answer.seconds, own_share=witness["own_share"])
    assert [one["own"] for one in witness["kernels"]] == [True], witness
    assert "relu" in witness["kernels"][0]["name"] and witness["own_share"] == 1


@pytest.mark.parametrize(("name", "own"), [("linear_relu", {False}), ("softmax", {True}), ("bias_gelu", {True})])
def test_a_librarys_kernels_are_not_ones_own(name, own, tmp_path, table):
    """linear_relu is one call of cuBLAS."""
    workspace = tmp_path / name
    shutil.copytree(REPOSITORY / "kernels" / name, workspace, ignore=shutil.ignore_patterns(".cuda-agent"))
    answer = run(workspace)
    assert answer.code == 0, str(answer)
    witness = answer.verdict["witness"]
    table(f"witness: {name}", trace=answer.verdict["timings"]["trace"], own_share=witness["own_share"], kernels=len(witness["kernels"]))
    assert {one["own"] for one in witness["kernels"]} == own, witness
    assert witness["own_share"] == (1 if own == {True} else 0)


def test_a_candidate_that_only_copies_breaks_a_rule(tmp_path):
    """The one that was built is never launched: the driver's copy does the work."""
    workspace = relu_workspace(tmp_path / "decoy")
    model = workspace / "model.py"
    model.write_text(model.read_text().replace(*TASK))
    source = workspace / "kernels" / "relu.cu"
    text = source.read_text()
    start = text.index("  relu<<<")
    launch = text[start : text.index(";", start) + 1]
    source.write_text(text.replace(launch, f"  if (count == -1) {{\n  {launch}\n  }}\n  cudaMemcpyAsync(out, x, count * sizeof(float), cudaMemcpyDeviceToDevice, stream);"))
    answer = run(workspace)
    assert (answer.code, answer.verdict["outcome"]) == (4, "policy_violation"), str(answer)
    assert answer.verdict["policy"]["findings"][0]["rule"] == "no-own-kernel"


def test_a_candidate_keeps_no_more_memory_than_allowed(tmp_path, table):
    workspace = relu_workspace(tmp_path / "keeps")
    source = workspace / "kernels" / "relu.cu"
    keep = "static void* kept = [] { void* p = nullptr; cudaMalloc(&p, 4ULL << 30); return p; }(); (void)kept;\n"
    source.write_text(source.read_text().replace("  relu<<<", f"  {keep}  relu<<<", 1))
    allowed = judged("verify", workspace, "--gpu-memory", "5GiB")
    assert allowed.code == 0, str(allowed)
    assert any(one["name"] == "GPU memory" and one["in_force"] for one in allowed.verdict["protections"])
    refused = judged("verify", workspace, "--gpu-memory", "4GB")
    table("memory: 4 GiB kept, 4 GB allowed", code=refused.code, message=refused.verdict["message"][:120])
    assert (refused.code, refused.verdict["outcome"], refused.verdict["fault"]) == (6, "crash", "candidate"), str(refused)
    assert "--gpu-memory allows" in refused.verdict["message"]
