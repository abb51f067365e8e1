"""What is looked at after the trials: inputs of other signs and sizes than get_inputs draws, and the precision."""

import pytest

from harness import NO_POLICY, TINY_KERNEL, TINY_MODEL, expect, judged, tiny_candidate, tiny_workspace

RIGHT_LINE = "out[i] = (x[i] > 0 ? x[i] : 0) * scale * weight[i % columns];"
# Draws from [0, 1), as benchmarks do.
POSITIVE = TINY_MODEL.replace("torch.randn(64, 64)", "torch.rand(64, 64)")


def workspace(into, line=RIGHT_LINE, model=POSITIVE, model_new=None):
    assert RIGHT_LINE in TINY_KERNEL and POSITIVE != TINY_MODEL
    kernel = TINY_KERNEL.replace(RIGHT_LINE, line).replace("#include <cmath>\n", "#include <cmath>\n#include <cstring>\n")
    return tiny_workspace(into, model=model, kernel=kernel, model_new=model_new)


def tried(verdict):
    return next(one for one in verdict["protections"] if one["name"] == "other inputs")


def test_a_right_candidate_passes_and_its_precision_is_known(tmp_path):
    verdict = expect(judged("verify", workspace(tmp_path / "w")), 0, "pass", fault="none")
    assert tried(verdict)["in_force"]
    precision = verdict["correctness"]["precision"]
    assert (precision["rule"], precision["lower"]) == ("same", False)
    assert precision["candidate"]["class"] == precision["eager"]["class"] == "fp32"
    assert precision["candidate"]["error"] < 1e-6


@pytest.mark.parametrize(
    "line",
    [
        "out[i] = x[i] * scale * weight[i % columns];",
        "out[i] = (x[i] > 0 ? std::fmin(x[i], 2.0F) : 0) * scale * weight[i % columns];",
    ],
    ids=["right for positive values only", "right for small values only"],
)
def test_what_is_right_for_the_drawn_values_alone_is_wrong(line, tmp_path):
    made = workspace(tmp_path / "w", line)
    verdict = expect(judged("verify", made), 6, "wrong", "other signs and sizes", r"output\[")
    assert verdict["correctness"]["passed"] == 5
    assert any("--only-drawn-inputs" in hint for hint in verdict["hints"])
    verdict = expect(judged("verify", made, "--only-drawn-inputs"), 0, "pass", fault="none")
    assert tried(verdict) == {"name": "other inputs", "in_force": False, "detail": "--only-drawn-inputs"}


@pytest.mark.parametrize(
    ("change", "why"),
    [("torch.log(x + 1e-3) * 0 + ", "NaN"), ("(1 / 0 if (x < 0).any() else 0) + ", "cannot take them")],
    ids=["NaN", "raises"],
)
def test_a_task_that_cannot_take_other_inputs_is_judged_on_its_own(change, why, tmp_path):
    model = POSITIVE.replace("return torch.relu", f"return {change}torch.relu")
    assert model != POSITIVE
    verdict = expect(judged("verify", workspace(tmp_path / "w", model=model)), 0, "pass", fault="none")
    assert not tried(verdict)["in_force"]
    assert why in tried(verdict)["detail"]
    assert verdict["correctness"]["precision"]["candidate"]["class"] == "fp32"


def rounded_to(bits):
    """The kernel with inputs that keep so many of their 23 bits."""
    drop = 23 - bits
    cut = f"std::uint32_t b; float v = x[i]; std::memcpy(&b, &v, 4); b = (b + (1u << {drop - 1})) & ~((1u << {drop}) - 1); std::memcpy(&v, &b, 4);"
    return "{ " + cut + " out[i] = (v > 0 ? v : 0) * scale * weight[i % columns]; }"


def test_ten_bits_are_named_and_gain_no_reward_above_one(tmp_path):
    made = workspace(tmp_path / "w", rounded_to(10))
    precision = expect(judged("verify", made), 0, "pass", fault="none")["correctness"]["precision"]
    assert precision["lower"] and precision["candidate"]["class"] == "tf32 or fp16"
    assert precision["eager"]["class"] == "fp32"
    accepted = judged("verify", made, "--precision", "any").verdict["correctness"]["precision"]
    assert (accepted["rule"], accepted["lower"]) == ("any", False)


def test_seven_bits_are_wrong_unless_any_precision_will_do(tmp_path):
    made = workspace(tmp_path / "w", rounded_to(7))
    verdict = expect(judged("verify", made), 6, "wrong", "precision")
    assert verdict["correctness"]["precision"]["candidate"]["class"] == "bf16 or less"
    expect(judged("verify", made, "--precision", "any"), 0, "pass", fault="none")


def test_half_precision_inside_has_no_room_for_large_values(tmp_path):
    half = "{ _Float16 v = static_cast<_Float16>(x[i]); out[i] = (v > 0 ? static_cast<float>(v) : 0) * scale * weight[i % columns]; }"
    expect(judged("verify", workspace(tmp_path / "w", half)), 6, "wrong", "other signs and sizes")


@pytest.mark.parametrize("flags", [("--precision", "tf32"), ("--gpu-memory", "8GB")], ids=["precision", "memory"])
@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_what_only_a_gpu_has_is_refused_on_the_processor(flags, device, tmp_path):
    answer = judged("verify", workspace(tmp_path / "w"), *flags, "--device", device, env={"CUDA_VISIBLE_DEVICES": ""})
    verdict = expect(answer, 2, "usage_error", flags[0], fault="environment")
    assert verdict["hints"]


def test_a_model_that_cannot_run_in_float64_is_said_so(tmp_path):
    model = POSITIVE.replace("return torch.relu(x)", "assert x.dtype == torch.float32\n        return torch.relu(x)")
    verdict = expect(judged("verify", workspace(tmp_path / "w", model=model)), 0, "pass", fault="none")
    assert verdict["correctness"]["precision"] is None
    assert "float64" in verdict["not_measured"]["/correctness/precision"]


def test_a_candidate_that_fails_on_other_inputs_is_at_fault(tmp_path):
    text = tiny_candidate("cuda_extension.tiny(x, self.weight, self.scale, 0 if x.min() >= 0 else 11)")
    verdict = expect(judged("verify", workspace(tmp_path / "w", model_new=text), *NO_POLICY), 6, "crash", "other signs and sizes", "mode 11")
    assert verdict["correctness"]["passed"] == 5


# The weights are asked for once when it is loaded, and once more for the candidate.
SLOWER_ONCE_THERE_IS_A_CANDIDATE = """
    asked = 0

    def state_dict(self, *arguments, **options):
        self.asked += 1
        return super().state_dict(*arguments, **options)

    def forward(self, x):
        time.sleep(0.02 if self.asked > 1 else 0)
        return"""


def test_a_candidate_beside_which_the_baseline_is_slow_is_looked_at_all_the_same(tmp_path):
    """Eager is then timed without it, and its processes are ended for that: it must have been looked at before."""
    model = "import time\n" + POSITIVE.replace("\n    def forward(self, x):\n        return", SLOWER_ONCE_THERE_IS_A_CANDIDATE)
    made = workspace(tmp_path / "w", "out[i] = x[i] * scale * weight[i % columns];", model)
    expect(judged("run", made, "--baseline", "eager"), 6, "wrong", "other signs and sizes")
    kernel = made / "kernels" / "tiny_cpu.cpp"
    kernel.write_text(kernel.read_text().replace("out[i] = x[i]", "out[i] = (x[i] > 0 ? x[i] : 0)"))
    verdict = expect(judged("run", made, "--baseline", "eager"), 0, "pass", fault="none")
    assert any("when it was gone" in one for one in verdict["speed"]["disturbed"]), verdict["speed"]["disturbed"]
    assert tried(verdict)["in_force"]
