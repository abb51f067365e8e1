"""Inputs from public bug reports about judges and kernels, those that need no GPU: each is judged as it should be."""

import shutil
import time

import pytest

from harness import (
    NO_POLICY,
    NOTHING_BINDING,
    TEMPLATE_BOMB,
    TINY_KERNEL,
    TINY_MODEL,
    cuda_agent,
    expect,
    judged,
    nothing_left,
    passes,
    tiny_candidate,
    tiny_mode,
    tiny_workspace,
)
from marks import needs_nvcc


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return tiny_workspace(tmp_path_factory.mktemp("cases") / "workspace")


@pytest.fixture(autouse=True)
def right(workspace):
    """Every test starts from the right task and candidate."""
    shutil.rmtree(workspace / "kernels")
    tiny_workspace(workspace)


def test_kernel_that_ends_for_small_values_only(workspace):
    """Case 2: right in the first trials, endless once a large value comes."""
    model = TINY_MODEL.replace("def get_inputs():\n    return [torch.randn(64, 64)]", """DRAWS = 0


def get_inputs():
    global DRAWS
    DRAWS += 1
    x = torch.randn(64, 64)
    x[0, 0] = 1.0 if DRAWS < 20 else 1e9
    return [x]""")
    assert "DRAWS" in model
    (workspace / "model.py").write_text(model)
    (workspace / "model_new.py").write_text(tiny_mode(10))
    answer = judged("verify", workspace, "--trials", "40", "--call-timeout", "2")
    verdict = expect(answer, 8, "timeout", r"running ModelNew\.forward \(trial \d+\)")
    assert verdict["correctness"]["passed"] >= 1
    nothing_left(workspace)
    (workspace / "model.py").write_text(TINY_MODEL)
    passes(workspace)


def test_template_bomb(workspace):
    """Case 3, with the host compiler."""
    (workspace / "kernels" / "bomb_cpu.cpp").write_text(TEMPLATE_BOMB)
    answer = judged("compile", workspace, "--compile-timeout", "3")
    verdict = expect(answer, 8, "timeout", r"kernels/bomb_cpu\.cpp took longer than 3 seconds")
    assert any("--compile-timeout" in hint for hint in verdict["hints"])
    assert answer.seconds < 30
    nothing_left(workspace)


@needs_nvcc
def test_template_bomb_in_cuda(workspace):
    """Case 3, with nvcc: the compilers that it starts end with it."""
    (workspace / "kernels" / "bomb.cu").write_text(TEMPLATE_BOMB)
    answer = cuda_agent("compile", workspace, "--arch", "90a", "--json", "--compile-timeout", "4")
    expect(answer, 8, "timeout", r"kernels/bomb\.cu took longer than 4 seconds")
    nothing_left(workspace)


def test_lack_of_a_compiler_is_not_remembered(workspace, tmp_path):
    """Case 4: the same bytes build as soon as there is a compiler."""
    fresh = f"// {time.time_ns()}\n" + TINY_KERNEL  # a source that no cache knows
    (workspace / "kernels" / "tiny_cpu.cpp").write_text(fresh)
    without = judged("compile", workspace, env={"CXX": tmp_path / "g++"})
    expect(without, 3, "environment_error", fault="environment")
    expect(judged("compile", workspace), 0, "pass", fault="none")


@needs_nvcc
def test_lack_of_nvcc_is_not_remembered(workspace, tmp_path):
    """Case 4, for CUDA."""
    shutil.rmtree(workspace / "kernels")
    (workspace / "kernels").mkdir()
    (workspace / "kernels" / "nothing_binding.cpp").write_text(NOTHING_BINDING)
    (workspace / "kernels" / "twice.cu").write_text(
        f"// {time.time_ns()}\n__global__ void twice(float* x) {{ x[threadIdx.x] *= 2; }}\n"
    )
    command = ("compile", workspace, "--arch", "90a", "--json")
    expect(cuda_agent(*command, env={"CUDA_HOME": tmp_path}), 3, "environment_error", "no nvcc", fault="environment")
    verdict = expect(cuda_agent(*command), 0, "pass", fault="none")
    assert not next(o for o in verdict["build"]["objects"] if o["source"] == "kernels/twice.cu")["cached"]


@needs_nvcc
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("-arch=sm_70", ("NVCC_APPEND_FLAGS", "-arch=sm_70", "does not compile for")),
        ("-gencode arch=compute_80,code=sm_80", ("NVCC_APPEND_FLAGS", "code=sm_80", "contradicts sm_90a", "--arch")),
    ],
)
def test_flags_for_another_architecture(workspace, flags, words):
    """Case 5: the flag is named, and who decides the architecture."""
    answer = cuda_agent("compile", workspace, "--arch", "90a", "--json", env={"NVCC_APPEND_FLAGS": flags})
    verdict = expect(answer, 3, "environment_error", *words, fault="environment")
    assert any("decided by --arch" in hint for hint in verdict["hints"])


@needs_nvcc
def test_architecture_that_nvcc_does_not_know(workspace):
    answer = cuda_agent("compile", workspace, "--arch", "sm_20", "--json")
    verdict = expect(answer, 3, "environment_error", "--arch sm_20", fault="environment")
    assert any("--arch" in hint for hint in verdict["hints"])


def test_forward_that_raises_on_its_third_call_only(workspace):
    """Case 6: two good calls do not make a pass."""
    text = tiny_candidate().replace("        return ", "        self.n = getattr(self, 'n', 0) + 1\n"
                                    "        if self.n == 3:\n            raise OSError('third')\n        return ")
    line = next(n for n, shown in enumerate(text.splitlines(), 1) if "OSError" in shown)
    (workspace / "model_new.py").write_text(text)
    verdict = expect(judged("run", workspace), 6, "crash", rf"trial 3.* OSError at model_new\.py:{line}: third")
    assert (verdict["correctness"]["trials"], verdict["correctness"]["passed"]) == (3, 2)
    assert verdict["reward"]["value"] == -1


def test_output_that_is_no_utf8(workspace):
    """Case 7: the answer is right, and --json stays one valid UTF-8 object."""
    (workspace / "model_new.py").write_text("import os\nos.write(1, b'\\x80' * 70000)\n" + tiny_mode(7))
    verdict = expect(judged("verify", workspace, *NO_POLICY), 0, "pass", fault="none")
    assert "\\xff\\xfe\\x00" in verdict["candidate"]["output"]
    assert "\\x80\\x80" in verdict["candidate"]["output"]


def test_build_of_the_candidates_own_that_swallows_errors(workspace):
    """Case 9: the judge compiles itself, so nobody can keep the compiler's words."""
    (workspace / "kernels" / "tiny_cpu.cpp").write_text(TINY_KERNEL.replace("std::abort();", "std::abort()"))
    line = next(n for n, shown in enumerate(TINY_KERNEL.splitlines(), 1) if "std::abort();" in shown)
    quiet = "try:\n    import cuda_extension\nexcept Exception:\n    cuda_extension = None\n"
    (workspace / "model_new.py").write_text(quiet + tiny_candidate("torch.relu(x) * self.scale * self.weight"))
    expect(judged("verify", workspace), 5, "compile_error", rf"kernels/tiny_cpu\.cpp:{line}:\d+: .*';'")


def test_crash_between_two_good_candidates(tmp_path):
    """Case 10: pass, crash, pass."""
    for name, mode, code in (("first", 0, 0), ("second", 1, 6), ("third", 0, 0)):
        made = tiny_workspace(tmp_path / name, model_new=tiny_mode(mode))
        answer = judged("verify", made)
        assert answer.code == code, str(answer)
        nothing_left(made)


@pytest.mark.parametrize(("mode", "code"), [(0, 0), (8, 6)], ids=["right", "wrong tail"])
def test_large_output_is_compared_to_its_end(workspace, mode, code):
    """Case 13: an output of 64 MiB, far larger than what is compared at a time."""
    (workspace / "model.py").write_text(TINY_MODEL.replace("torch.randn(64, 64)", "torch.rand(1 << 18, 64)"))
    (workspace / "model_new.py").write_text(tiny_mode(mode))
    answer = judged("verify", workspace, "--trials", "1")
    assert answer.code == code, str(answer)
    if code:
        expect(answer, 6, "wrong", r"output\[262143, 63\]: got ", "1 of 16777216 elements")


def test_pytorch_in_place_of_a_build_that_fails(workspace):
    """Case 14: refused by the rules; without them what ran is judged, no own kernel is claimed, no reward given."""
    text = """
import subprocess
try:
    subprocess.run(["g++", "-c", "/tmp/not-there.cpp"], check=True)
except Exception as error:
    print("swallowed:", type(error).__name__)
"""
    (workspace / "model_new.py").write_text(text + tiny_candidate("torch.relu(x) * self.scale * self.weight"))
    refused = expect(judged("run", workspace), 4, "policy_violation", r"model_new\.py:\d+: ")
    rules = {finding["rule"] for finding in refused["policy"]["findings"]}
    assert {"torch-compute", "no-own-kernel"} <= rules, rules
    assert refused["reward"]["value"] == -1
    verdict = expect(judged("run", workspace, *NO_POLICY, "--baseline", "eager"), 0, "pass", fault="none")
    assert verdict["reward"]["value"] is None
    assert "--policy none" in verdict["reward"]["reason"]
    assert "swallowed:" in verdict["candidate"]["output"]
    assert {one["name"] for one in verdict["witness"]["operators"]} >= {"aten::relu", "aten::mul"}
    assert "/witness/kernels" in verdict["not_measured"]
    policy = next(one for one in verdict["protections"] if one["name"] == "policy")
    assert policy["in_force"] is False
