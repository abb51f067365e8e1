"""Tasks that are at fault: exit code 9, `task_error`, no reward, the line of model.py."""

import pytest

import harness
from harness import TINY_MODEL, judged, nothing_left, passes


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return harness.tiny_workspace(tmp_path_factory.mktemp("faults") / "workspace")


def expect(workspace, model, *words, arguments=(), command="verify"):
    (workspace / "model.py").write_text(model)
    answer = judged(command, workspace, "--trials", "1", *arguments)
    verdict = harness.expect(answer, 9, "task_error", *words, fault="task")
    assert verdict["reward"]["value"] is None
    nothing_left(workspace)
    return verdict


def test_no_model_file(workspace):
    (workspace / "model.py").unlink()
    answer = judged("verify", workspace)
    assert (answer.code, answer.verdict["fault"]) == (9, "task"), str(answer)
    assert "model.py is missing" in answer.verdict["message"]
    nothing_left(workspace)


def test_model_file_that_raises(workspace):
    expect(workspace, "import torch\nraise ValueError('not today')\n", r"ValueError at model\.py:2: not today")


def test_syntax_error(workspace):
    text = TINY_MODEL.replace("class Model(nn.Module):", "class Model(nn.Module)")
    expect(workspace, text, r"SyntaxError at model\.py:5")


def test_forward_that_raises(workspace):
    text = TINY_MODEL.replace("return torch.relu(x)", "return [].pop() * torch.relu(x)")
    line = next(n for n, shown in enumerate(text.splitlines(), 1) if "pop()" in shown)
    expect(workspace, text, rf"IndexError at model\.py:{line}: pop from empty list", command="run")


@pytest.mark.parametrize("name", ["get_inputs", "Model"])
def test_without(workspace, name):
    text = TINY_MODEL.replace(f"def {name}()", "def other()").replace(f"class {name}(", "class Other(")
    expect(workspace, text, rf"model\.py does not define {name}$")


def test_inputs_that_raise(workspace):
    text = TINY_MODEL.replace("return [torch.randn(64, 64)]", "return [torch.randn(-1)]")
    line = next(n for n, shown in enumerate(text.splitlines(), 1) if "randn(-1)" in shown)
    expect(workspace, text, rf"model\.py:{line}", r"get_inputs\(\)")


def test_inputs_that_cannot_be_passed_on(workspace):
    text = TINY_MODEL.replace("return [torch.randn(64, 64)]", "return [object()]")
    expect(workspace, text, r"get_inputs\(\)\[0\] is a")


def test_constructor_that_raises(workspace):
    text = TINY_MODEL.replace("self.scale = scale", "self.scale = scale / 0")
    expect(workspace, text, r"ZeroDivisionError at model\.py:8")


def test_crash(workspace):
    verdict = expect(workspace, "import os\nos.kill(os.getpid(), 11)\n" + TINY_MODEL, r"model\.py", "SIGSEGV")
    assert verdict["hints"] is not None


def test_hang(workspace):
    """The time limit of the whole ask ends it. That is nobody's fault; the message says what took the time."""
    (workspace / "model.py").write_text("while True:\n    pass\n")
    answer = judged("verify", workspace, "--timeout", "12")
    assert (answer.code, answer.verdict["outcome"], answer.verdict["fault"]) == (8, "timeout", "environment"), str(answer)
    assert "model.py" in answer.verdict["message"]
    assert answer.verdict["reward"]["value"] is None
    nothing_left(workspace)


def test_after_all_of_these_a_good_task_passes(workspace):
    (workspace / "model.py").write_text(TINY_MODEL)
    passes(workspace)
