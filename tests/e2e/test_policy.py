"""The rules of the policy in an ask: what breaks them, where the verdict says so, and what `--policy none` costs."""

import pytest

from harness import NO_POLICY, cuda_agent, expect, judged, nothing_left, tiny_candidate, tiny_workspace

BY_TORCH = tiny_candidate("torch.relu(x)")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return tiny_workspace(tmp_path_factory.mktemp("policy") / "workspace")


def findings(verdict):
    return {finding["rule"]: finding for finding in verdict["policy"]["findings"]}


def compute_in_torch(workspace):
    """The workspace with a binding that calls torch's relu."""
    binding = workspace / "kernels" / "tiny_binding.cpp"
    text = binding.read_text()
    binding.write_text(text.replace("  return out;", "  return at::relu(out);"))
    assert binding.read_text() != text
    return workspace


def test_an_honest_candidate_keeps_the_rules(workspace):
    verdict = expect(judged("verify", workspace), 0, "pass", fault="none")
    assert verdict["policy"] == {"enforced": True, "findings": [], "left_out": 0}
    assert next(one for one in verdict["protections"] if one["name"] == "policy")["in_force"]


@pytest.mark.parametrize("command", ["compile", "verify", "run"])
def test_torch_in_model_new_is_a_violation(command, tmp_path):
    made = tiny_workspace(tmp_path / "workspace", model_new=BY_TORCH)
    line = next(n for n, text in enumerate(BY_TORCH.splitlines(), 1) if "torch.relu" in text)
    verdict = expect(judged(command, made), 4, "policy_violation", rf"model_new\.py:{line}:? .*torch\.relu.*torch-compute")
    found = findings(verdict)["torch-compute"]
    assert (found["file"], found["line"], found["symbol"]) == ("model_new.py", line, None)
    assert "torch.relu" in found["source"] and "forward" in found["reached"] and found["hint"]
    assert verdict["reward"]["value"] == -1
    nothing_left(made)


@pytest.mark.parametrize("command", ["compile", "verify"])
def test_torch_in_a_binding_is_a_violation_also_when_it_is_in_the_cache(command, tmp_path):
    made = compute_in_torch(tiny_workspace(tmp_path / "workspace"))
    for cached in (False, True):
        verdict = expect(judged(command, made), 4, "policy_violation", "at::_ops::relu|at::relu", "tiny_binding.cpp")
        found = findings(verdict)["torch-compute"]
        assert found["file"] == "kernels/tiny_binding.cpp" and "relu" in found["symbol"]
        link = next(one for one in verdict["build"]["objects"] if one["source"] == "cuda_extension")
        assert link["cached"] or not cached


def test_without_the_rules_there_is_no_reward(tmp_path):
    right = tiny_candidate("torch.relu(x) * self.scale * self.weight")
    made = tiny_workspace(tmp_path / "workspace", model_new=right)
    verdict = expect(judged("run", made, *NO_POLICY, "--baseline", "eager"), 0, "pass", fault="none")
    assert verdict["reward"]["value"] is None and "--policy none" in verdict["reward"]["reason"]
    assert verdict["policy"] == {"enforced": False, "findings": [], "left_out": 0}
    assert not next(one for one in verdict["protections"] if one["name"] == "policy")["in_force"]


def test_what_does_not_compile_is_said_first_and_the_rules_beside_it(tmp_path):
    made = tiny_workspace(tmp_path / "workspace", model_new=BY_TORCH)
    kernel = made / "kernels" / "tiny_cpu.cpp"
    kernel.write_text(kernel.read_text() + "\nint broken = missing;\n")
    verdict = expect(judged("verify", made), 5, "compile_error", r"kernels/tiny_cpu\.cpp:\d+:\d+: .*missing")
    assert "torch-compute" in findings(verdict)


def test_the_report_shows_line_rule_and_what_to_do(tmp_path):
    made = tiny_workspace(tmp_path / "workspace", model_new=BY_TORCH)
    answer = cuda_agent("verify", made, "--device", "cpu")
    assert answer.code == 4
    assert answer.out.startswith("POLICY VIOLATION")
    for part in ("[torch-compute]", "return torch.relu(x)", "forward → torch.relu", "policy explain torch-compute"):
        assert part in answer.out, answer.out


def test_a_grade_cannot_leave_the_rules_out(workspace):
    answer = cuda_agent("grade", workspace, "--policy", "none")
    assert answer.code == 2 and "--policy" in answer.err


def test_every_finding_is_listed_up_to_a_limit(tmp_path):
    many = ",\n".join(f"            torch.relu(x + {n})" for n in range(150))
    made = tiny_workspace(tmp_path / "workspace", model_new=tiny_candidate(f"[\n{many},\n        ][0]"))
    verdict = expect(judged("verify", made), 4, "policy_violation", r"and \d+ more")
    listed = verdict["policy"]["findings"]
    assert 50 <= len(listed) <= 100
    assert any("more findings" in one["message"] for one in listed)
