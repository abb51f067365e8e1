"""Candidates that are wrong, crash or hang: exit code, fault, outcome, what the message names, and what is left behind.

All run in one workspace, one after the other, so that each is also a check that the one before has spoilt nothing.
"""

import re

import pytest

import harness
from harness import NO_POLICY, TINY_FORWARD, judged, nothing_left, passes, tiny_candidate, tiny_mode

RIGHT = tiny_candidate()
LIMITS = ("--call-timeout", "2")


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return harness.tiny_workspace(tmp_path_factory.mktemp("faults") / "workspace")


def verdict_of(workspace, model_new, *arguments, command="verify", trials="1"):
    """The verdict on a candidate, after which nothing may be left."""
    (workspace / "model_new.py").write_text(model_new)
    answer = judged(command, workspace, *NO_POLICY, "--trials", trials, *arguments)
    verdict = answer.verdict
    assert verdict["exit_code"] == answer.code, str(answer)
    nothing_left(workspace)
    return verdict


def expect(verdict, code, outcome, *words, fault="candidate"):
    said = (verdict["exit_code"], verdict["outcome"], verdict["fault"])
    assert said == (code, outcome, fault), verdict["message"] + "\n" + verdict["detail"]
    for word in words:
        assert re.search(word, verdict["message"]), verdict["message"]


def line_of(text, part):
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


# --- the form of model_new.py -----------------------------------------------------------------------------------------


def test_python_syntax_error(workspace):
    text = RIGHT.replace("return cuda", "return return cuda")
    verdict = verdict_of(workspace, text)
    expect(verdict, 6, "crash", rf"model_new\.py:{line_of(text, 'return return')}", "SyntaxError")


def test_missing_model_new_class(workspace):
    verdict = verdict_of(workspace, RIGHT.replace("ModelNew", "Modelnew"))
    expect(verdict, 6, "wrong", r"model_new\.py", "ModelNew")
    assert verdict["hints"]


def test_missing_model_new_file(workspace):
    (workspace / "model_new.py").unlink()
    answer = judged("verify", workspace)
    expect(answer.verdict, 5, "compile_error", r"model_new\.py is missing")
    nothing_left(workspace)


def test_constructor_that_differs(workspace):
    verdict = verdict_of(workspace, RIGHT.replace("self, scale: float", "self, scale: float, shift: float"))
    expect(verdict, 6, "wrong", r"scale: float, shift: float", r"Model\.__init__\(self, scale: float\)")


@pytest.mark.parametrize(
    ("replaced", "by", "words"),
    [
        ("self.weight = nn.P", "self.w = nn.P", ("missing: weight", "not in Model: w")),
        ("torch.rand(64)", "torch.rand(32)", (r"weight: \[32\] float32 instead of \[64\] float32",)),
    ],
    ids=["name", "shape"],
)
def test_state_dict_that_differs(workspace, replaced, by, words):
    expect(verdict_of(workspace, RIGHT.replace(replaced, by)), 6, "wrong", *words)


def test_call_of_a_binding_that_is_not_there(workspace):
    text = tiny_candidate("cuda_extension.tyni(x)")
    expect(verdict_of(workspace, text), 6, "crash", rf"model_new\.py:{line_of(text, 'tyni')}", "tyni")


# --- what forward returns ---------------------------------------------------------------------------------------------

NUMBER = r"-?\d[\d.e+-]*"


def test_wrong_value(workspace):
    verdict = verdict_of(workspace, tiny_candidate(f"{TINY_FORWARD} + 1"))
    expect(verdict, 6, "wrong", rf"output\[0, 0\]: got {NUMBER}, expected {NUMBER}", "of 4096 elements")
    first = verdict["correctness"]["first_mismatch"]
    assert first["index"] == [0, 0] and first["got"] != first["expected"]


def test_wrong_only_in_the_last_element(workspace):
    verdict = verdict_of(workspace, tiny_mode(8))
    expect(verdict, 6, "wrong", rf"output\[63, 63\]: got {NUMBER}, expected {NUMBER}", "1 of 4096 elements")


def test_wrong_shape(workspace):
    verdict = verdict_of(workspace, tiny_candidate(f"{TINY_FORWARD}[:, :-1]"))
    expect(verdict, 6, "wrong", r"output has shape \[64, 63\], expected \[64, 64\]")


def test_wrong_dtype(workspace):
    verdict = verdict_of(workspace, tiny_candidate(f"{TINY_FORWARD}.double()"))
    expect(verdict, 6, "wrong", "output has dtype float64, expected float32")


def test_nan(workspace):
    verdict = verdict_of(workspace, tiny_mode(9))
    expect(verdict, 6, "wrong", rf"output\[32, 0\]: got nan, expected {NUMBER}", "1 of them NaN")


def test_none_instead_of_a_tensor(workspace):
    expect(verdict_of(workspace, tiny_candidate("None")), 6, "wrong", "output is None, expected a float32 tensor")


def test_keep_going_counts_all_trials(workspace):
    verdict = verdict_of(workspace, tiny_candidate(f"{TINY_FORWARD} + 1"), "--keep-going", trials="3")
    assert (verdict["correctness"]["trials"], verdict["correctness"]["passed"]) == (3, 0)


# --- exceptions, crashes, ends ----------------------------------------------------------------------------------------


def test_forward_that_raises(workspace):
    text = tiny_candidate("x / [].pop()")
    verdict = verdict_of(workspace, text)
    expect(verdict, 6, "crash", rf"IndexError at model_new\.py:{line_of(text, 'pop()')}: pop from empty list")
    assert "Traceback" in verdict["detail"] or "model_new.py" in verdict["detail"]


def test_cpp_exception(workspace):
    text = tiny_mode(11)
    expect(verdict_of(workspace, text), 6, "crash", rf"model_new\.py:{line_of(text, ', 11)')}", "mode 11 is refused")


@pytest.mark.parametrize(
    ("mode", "words"),
    [(1, "SIGSEGV"), (2, "SIGABRT"), (3, "code 0")],
    ids=["segfault", "abort", "exit(0)"],
)
def test_crash_in_cpp(workspace, mode, words):
    verdict = verdict_of(workspace, tiny_mode(mode))
    expect(verdict, 6, "crash", words, r"ModelNew\.forward")
    passes(workspace)


@pytest.mark.parametrize("way", ["sys.exit(0)", "os._exit(0)", "exit()"])
def test_exit_at_import_is_no_pass(workspace, way):
    verdict = verdict_of(workspace, f"import os, sys\n{way}\n" + RIGHT)
    expect(verdict, 6, "crash", r"model_new\.py")


# --- hangs ------------------------------------------------------------------------------------------------------------

FOREVER = "while True:\n    pass\n"


def test_hang_at_import(workspace):
    expect(verdict_of(workspace, FOREVER + RIGHT, *LIMITS), 8, "timeout", r"importing model_new\.py")
    passes(workspace)


def test_hang_in_forward(workspace):
    text = tiny_candidate("[None for _ in iter(int, 1)]")
    expect(verdict_of(workspace, text, *LIMITS), 8, "timeout", r"ModelNew\.forward \(trial 1\)")
    passes(workspace)


def test_endless_loop_in_cpp(workspace):
    expect(verdict_of(workspace, tiny_mode(4), *LIMITS), 8, "timeout", r"ModelNew\.forward \(trial 1\)")
    passes(workspace)


def test_endless_loop_that_ignores_signals(workspace):
    deaf = "import signal\nfor s in set(signal.Signals) - {9, 19}:\n    signal.signal(s, signal.SIG_IGN)\n"
    text = deaf + tiny_mode(4)
    expect(verdict_of(workspace, text, *LIMITS), 8, "timeout")
    passes(workspace)


# --- what it prints ---------------------------------------------------------------------------------------------------


def test_100_mb_of_output(workspace):
    verdict = verdict_of(workspace, tiny_mode(5))
    expect(verdict, 0, "pass", fault="none")
    assert re.search(r"\d{8} bytes left out", verdict["candidate"]["output"])
    assert len(verdict["candidate"]["output"]) < 1_000_000


def test_what_it_printed_before_a_crash_is_shown(workspace):
    verdict = verdict_of(workspace, "print('still here')\n" + tiny_mode(2))
    expect(verdict, 6, "crash")
    assert "still here" in verdict["candidate"]["output"]


def test_terminal_escapes(workspace):
    (workspace / "model_new.py").write_text(tiny_mode(6))
    for arguments in (("--json",), ("-v",)):
        answer = harness.cuda_agent("verify", workspace, "--device", "cpu", "--trials", "1", *NO_POLICY, *arguments)
        assert answer.code == 0, str(answer)
        assert "\x1b" not in answer.out + answer.err
        assert "\x07" not in answer.out + answer.err
        assert "owned" in answer.out


def test_terminal_escapes_in_an_exception(workspace):
    (workspace / "model_new.py").write_text("raise RuntimeError('\\x1b[2Jowned\\x07')\n" + RIGHT)
    answer = harness.cuda_agent("verify", workspace, "--device", "cpu", *NO_POLICY)
    assert answer.code == 6, str(answer)
    assert "model_new.py:1" in answer.out
    assert "\\x1b[2Jowned" in answer.out
    assert "\x1b" not in answer.out + answer.err


def test_after_all_of_these_a_good_candidate_passes(workspace):
    passes(workspace)
