"""The rules against a corpus of small files, in this process."""

import json
import subprocess
import sys

import allowed_cases
import detour_cases
import pytest
import refused_cases
from policy_harness import CONFIG, POLICY, REPOSITORY, RULES, file, findings, rules_of, shown

EXAMPLES = [REPOSITORY / "agent_workdir" / "model_new.py", *sorted((REPOSITORY / "kernels").glob("*/model_new.py"))]


REFUSED = refused_cases.CASES + detour_cases.CASES


@pytest.mark.parametrize("rule, name, text", REFUSED, ids=[f"{rule}: {name}" for rule, name, _ in REFUSED])
def test_is_refused(rule, name, text):
    found = findings(text)
    assert rule in [f["rule"] for f in found], f"{text}\n---\n{shown(found)}"


@pytest.mark.parametrize("name, text", allowed_cases.CASES, ids=[name for name, _ in allowed_cases.CASES])
def test_is_allowed(name, text):
    found = findings(text)
    assert not found, f"{text}\n---\n{shown(found)}"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_our_own_examples_are_clean(path):
    found = findings(path.read_text())
    assert not found, shown(found)


def test_there_are_eight_examples():
    assert len(EXAMPLES) == 8


def example(text):
    """A rule's example as a file: the whole of it, what stands before the class, or forward's body."""
    if text.startswith(("import ", "from ", "class ")):
        return file(before=text + "\n") if "class Other" not in text else file().split("\nclass ModelNew")[0] + "\n" + text
    return file(text)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule["wrong"]], ids=lambda rule: rule["name"])
def test_examples_of_the_rules_are_true(rule):
    found = findings(example(rule["wrong"]))
    assert rule["name"] in [f["rule"] for f in found], shown(found)
    found = findings(example(rule["right"]))
    assert not found, shown(found)


def test_every_rule_is_tried():
    tried = {rule for rule, _, _ in REFUSED}
    # Only a fault of the checker itself gives this one: tests/unit/policy.
    assert {rule["name"] for rule in RULES} - tried == {"cannot-be-checked"}


def test_every_finding_has_a_rule_with_a_hint():
    names = {rule["name"] for rule in RULES}
    for _, name, text in REFUSED:
        for finding in findings(text):
            assert finding["rule"] in names, name
            assert finding["hint"], name
            assert finding["message"], name


def test_says_how_a_place_is_reached():
    text = file("return self.a(x)", methods="def a(self, v):\n    return b(v)\n",
                before="def b(v):\n    return torch.relu(cuda_extension.copy(v))\n")  # fmt: skip
    (finding,) = findings(text)
    assert finding["reached"] == "forward → a → b → torch.relu"
    assert finding["source"] == "return torch.relu(cuda_extension.copy(v))"
    assert text.split("\n")[finding["line"] - 1][finding["column"] - 1 :].startswith("torch.relu")


def test_columns_count_characters():
    (finding,) = findings(file("é = cuda_extension.relu(x); return torch.relu(é)"))
    assert finding["source"][finding["column"] - 9 :].startswith("torch.relu")


def test_one_place_is_one_finding():
    assert rules_of(file("for _ in range(3):\n    x = cuda_extension.f(torch.relu(x))\nreturn x")) == ["torch-compute"]


def test_what_is_refused_is_said_where_it_is_used_and_of_nothing_that_comes_of_it():
    text = "import hashlib\nimport os\n" + file("if os.path.exists('/tmp'):\n    x = cuda_extension.f(x)\nreturn cuda_extension.relu(x, hashlib.sha256(b'x').hexdigest()[:4])")
    assert [one["message"] for one in findings(text)] == ["import hashlib", "import os", "os.path.exists is used", "hashlib.sha256 is used"]


def test_findings_are_limited_and_counted():
    body = "y = cuda_extension.relu(x)\n" + "\n".join("y = torch.relu(y)" for _ in range(200)) + "\nreturn y"
    answer = run_checker(file(body))
    assert len(answer) == CONFIG.limits["findings"]
    assert answer[-1]["message"].endswith("(and 150 more findings)")


def test_syntax_that_is_not_known_is_refused(monkeypatch):
    from policy_interpreter import Interpreter

    monkeypatch.delattr("policy_statements.Statements.exec_Assert")
    assert "cannot-be-checked" in rules_of(file("assert x is not None\nreturn cuda_extension.f(x)"))
    monkeypatch.delattr("policy_expressions.Expressions.eval_Lambda")
    assert "cannot-be-checked" in rules_of(file("f = lambda: 1\nreturn cuda_extension.f(x, f())"))
    assert not hasattr(Interpreter, "eval_Lambda")


@pytest.mark.parametrize("limit, most, rule", [("steps", 50, "too-deep"), ("passes", 1, "too-deep"), ("nodes", 50, "too-large")])
def test_work_is_limited(monkeypatch, limit, most, rule):
    monkeypatch.setitem(CONFIG.limits, limit, most)
    assert rule in rules_of(file())


def run_checker(text, tmp="model_new.py"):
    """The checker as the judge starts it."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / tmp
        path.write_text(text)
        command = [sys.executable, "-I", "-S", "-B", POLICY / "rules" / "cuda_agent_rules.py", POLICY / "policy.json", path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, lines[0]) == (0, "", "cuda-agent-rules: ready")
    return json.loads(lines[1].removeprefix("cuda-agent-rules: "))["findings"]
