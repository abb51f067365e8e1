"""`cuda-agent policy` through the binary."""

import json

import allowed_cases
import pytest
import refused_cases
from harness import EXAMPLE, cuda_agent
from policy_harness import RULES, file


def workspace(folder, text):
    (folder / "model_new.py").write_text(text)
    return folder


def test_check_of_an_honest_workspace():
    answer = cuda_agent("policy", "check", EXAMPLE)
    assert (answer.code, answer.out) == (0, "model_new.py keeps the rules\n"), str(answer)


@pytest.mark.parametrize("name, text", allowed_cases.CASES[::12], ids=[name for name, _ in allowed_cases.CASES[::12]])
def test_check_passes(tmp_path, name, text):
    answer = cuda_agent("policy", "check", workspace(tmp_path, text), "--json")
    assert answer.code == 0, str(answer)
    assert json.loads(answer.out) == {"schema": "cuda-agent/policy-check/1", "clean": True, "findings": []}


@pytest.mark.parametrize("rule, name, text", refused_cases.CASES[::24], ids=[name for _, name, _ in refused_cases.CASES[::24]])
def test_check_refuses(tmp_path, rule, name, text):
    answer = cuda_agent("policy", "check", workspace(tmp_path, text), "--json")
    assert answer.code == 4, str(answer)
    assert rule in [finding["rule"] for finding in json.loads(answer.out)["findings"]]


def test_a_finding_says_where_how_and_what_to_do(tmp_path):
    text = file("return self.run(cuda_extension.copy(x))", methods="def run(self, v):\n    return torch.relu(v)\n")
    answer = cuda_agent("policy", "check", cwd=workspace(tmp_path, text))
    assert answer.code == 4
    line = text.split("\n").index("        return torch.relu(v)") + 1
    assert answer.out == (
        f"model_new.py:{line}:16: torch.relu computes with torch [torch-compute]\n"
        "  return torch.relu(v)\n"
        "  reached  forward → run → torch.relu\n"
        "  instead  compute it in a kernel under kernels/ and call that through cuda_extension\n"
    )


def test_the_judged_file_is_never_run(tmp_path):
    marker = tmp_path / "ran"
    cuda_agent("policy", "check", workspace(tmp_path, f"open({str(marker)!r}, 'w')\n" + file()))
    assert not marker.exists()


def test_check_without_a_model_new(tmp_path):
    answer = cuda_agent("policy", "check", tmp_path)
    assert answer.code == 2
    assert "there is no model_new.py in" in answer.err


def test_check_without_a_python(tmp_path):
    answer = cuda_agent("policy", "check", workspace(tmp_path, file()), "--python", "/no/such/python", "--json")
    assert answer.code == 3
    assert json.loads(answer.out)["outcome"] == "environment_error"


def test_show_lists_every_rule_and_name():
    answer = cuda_agent("policy", "show")
    assert answer.code == 0
    for word in [*(rule["name"] for rule in RULES), "torch.empty_like", "subprocess", "is_contiguous"]:
        assert word in answer.out, word
    assert max(map(len, answer.out.splitlines())) < 200


def test_show_as_json():
    answer = cuda_agent("policy", "show", "--json")
    assert json.loads(answer.out)["rules"] == RULES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["name"])
def test_explain(rule):
    answer = cuda_agent("policy", "explain", rule["name"])
    assert answer.code == 0
    for text in (rule["summary"], rule["why"], rule["instead"], *rule["wrong"].splitlines(), *rule["right"].splitlines()):
        assert text in answer.out


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["explain", "torch-compte"], "did you mean 'torch-compute'"),
        (["explain"], "needs the name of a rule"),
        (["show", "x"], "takes no argument"),
        (["chekc"], "did you mean 'check'"),
        ([], "action"),
    ],
)
def test_wrong_usage(arguments, words):
    answer = cuda_agent("policy", *arguments)
    assert answer.code == 2
    assert words in answer.err, str(answer)
